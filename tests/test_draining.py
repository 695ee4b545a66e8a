"""A worker that ends finishes what it runs and keeps nothing else from the other workers."""

from __future__ import annotations

import threading

import dramatiq
from dramatiq import Worker

from dramatiq_echomq import EchoMQBroker

from .queues import state
from .servers import wait_until


def test_a_worker_that_drains_takes_nothing_and_gives_back_what_it_had_prefetched(client):
    broker = EchoMQBroker(client=client, middleware=[])
    begun, gate, ran = threading.Event(), threading.Event(), []

    @dramatiq.actor(broker=broker, queue_name="q")
    def work(number):
        begun.set()
        gate.wait(20)
        ran.append(number)

    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    work.send(0)
    assert begun.wait(10)
    held = [work.send(number).options["echomq_job_id"] for number in (1, 2)]
    ending = threading.Thread(target=worker.stop)
    ending.start()
    wait_until(lambda: broker.is_draining)
    late = work.send(3).options["echomq_job_id"]

    wait_until(lambda: late in state(client)["wait"])
    assert client.llen("emq:q:active") <= 2
    gate.set()
    ending.join(20)

    assert ran == [0]
    assert state(client)["wait"] == [late, held[1], held[0]]
    assert "active" not in state(client)
    broker.close()
