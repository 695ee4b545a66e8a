"""A worker that ends finishes what it runs and keeps nothing else from the other workers."""

from __future__ import annotations

import math
import threading

import dramatiq
import pytest
import redis
from dramatiq import Worker
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import lines
from ..support.faults import Faults, quicken
from ..support.job_data import add, id_of
from ..support.queue_data import state
from ..support.servers import wait_until


def test_a_worker_that_drains_takes_nothing_and_gives_back_what_it_had_prefetched(client):
    broker = EchoMQBroker(client=client, middleware=[])
    started, gate, ran = threading.Event(), threading.Event(), []

    @dramatiq.actor(broker=broker, queue_name="q")
    def work(number):
        started.set()
        gate.wait(20)
        ran.append(number)

    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    work.send(0)
    assert started.wait(20)
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


def test_a_worker_that_drains_gives_back_what_a_lost_reply_had_given_to_it(client, broker, monkeypatch):
    ids = [id_of(add(broker, number)) for number in range(4)]
    faults = Faults(monkeypatch)
    consumer = broker.consume("q", prefetch=4, timeout=1)
    faults.plan("finishAndFetch-1.lua", *[redis.TimeoutError("lost")] * 2, has_run=True)
    with pytest.raises(ConnectionClosed):
        next(consumer)
    assert client.llen("emq:q:active") == 4

    broker.emit_before("worker_shutdown", None)
    consumer.close()

    assert state(client)["wait"] == ids[::-1]
    assert "active" not in state(client)
    assert state(client)["locks"] == set()


def break_queue(client, monkeypatch) -> None:
    client.set("emq:q:stalled", "x")


def lose_server(client, monkeypatch) -> None:
    Faults(monkeypatch).plan("finishAndFetch-1.lua", *[redis.TimeoutError("Timeout reading from socket")] * 1_000_000)


@pytest.mark.parametrize("stop_acks", [break_queue, lose_server])
def test_a_worker_that_drains_gives_up_a_job_whose_end_cannot_be_told(client, monkeypatch, caplog, stop_acks):
    """Else its thread would try again for as long as Dramatiq waits, 10 minutes by default."""
    quicken(monkeypatch)
    broker = EchoMQBroker(client=client, middleware=[])
    begun, gate = threading.Event(), threading.Event()

    @dramatiq.actor(broker=broker, queue_name="q")
    def work():
        begun.set()
        gate.wait(20)

    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    job_id = id_of(work.send())
    assert begun.wait(20)
    [job] = broker.in_flight.all()
    stop_acks(client, monkeypatch)
    gate.set()
    ending = threading.Thread(target=worker.stop)
    ending.start()
    wait_until(lambda: job.acking_since < math.inf)
    job.acking_since -= broker.settings.lock_duration / 1000  # as when it could not be told for so long
    ending.join(20)

    assert not ending.is_alive()
    assert client.lrange("emq:q:active", 0, -1) == [job_id.encode()]  # a check brings it back
    [line] = [line for line in lines(caplog, "WARNING") if "the worker ends" in line]
    assert job_id in line
    assert not line.endswith("..")
    broker.close()
