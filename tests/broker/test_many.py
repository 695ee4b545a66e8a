"""More queues and more threads at once than a pool of redis-py 8 has connections."""

from __future__ import annotations

import threading

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working
from ..support.job_data import JOB, message, take
from ..support.queue_data import put
from ..support.servers import wait_until

#: Beyond the 100 connections of a pool of redis-py 8.
QUEUES = 130


@pytest.fixture(params=["url", "client"])
def own_broker(request, client, redis_url):
    """A broker that was given its server in one of the ways there are."""
    broker = EchoMQBroker(**{request.param: {"url": redis_url, "client": client}[request.param]}, middleware=[])
    yield broker
    broker.close()


def test_a_worker_serves_every_queue_however_many_there_are(client, own_broker, caplog):
    ran = set()
    for number in range(QUEUES):
        dramatiq.actor(ran.add, actor_name=f"work{number}", queue_name=f"q{number}", broker=own_broker)

    with working(own_broker, worker_timeout=1_000, worker_threads=4):
        wait_until(lambda: client.info("clients")["blocked_clients"] >= QUEUES)
        for number in range(QUEUES):
            own_broker.enqueue(message(number, actor=f"work{number}", queue=f"q{number}"))
        wait_until(lambda: ran == set(range(QUEUES)))

    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR", "CRITICAL")]


def test_250_jobs_that_end_at_once_are_all_acked_within_2_s(client, own_broker):
    ids = [f"job{number}" for number in range(250)]
    put(client, wait=ids, jobs=dict.fromkeys(ids, JOB))
    consumer, messages = take(own_broker, 250)
    at_once, failures = threading.Barrier(251), []

    def ack(taken) -> None:
        at_once.wait(20)
        try:
            consumer.ack(taken)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ack, args=[taken]) for taken in messages]
    for thread in threads:
        thread.start()
    at_once.wait(20)
    for thread in threads:
        thread.join(20)

    assert not failures
    assert client.zcard("emq:q:completed") == 250
