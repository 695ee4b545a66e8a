"""Keys of a queue that become something else while jobs of it run."""

from __future__ import annotations

import threading

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.queue import Fetch

from ..support.brokers import working
from ..support.faults import quicken
from ..support.job_data import message
from ..support.queue_data import put, state
from ..support.servers import wait_until

TO_FETCH = ["wait", "paused", "delayed", "prioritized", "limiter"]
TO_FINISH = ["active", "stalled", "completed", "failed", "marker", "events", "meta"]


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


class Gate:
    """An actor whose first run waits."""

    def __init__(self, broker) -> None:
        self.ran: list[int] = []
        self.started, self.may_end = threading.Event(), threading.Event()
        dramatiq.actor(self.work, actor_name="work", queue_name="q", broker=broker)

    def work(self, number: int) -> None:
        self.ran.append(number)
        self.started.set()
        self.may_end.wait(20)


@pytest.mark.parametrize("name", TO_FETCH + TO_FINISH)
def test_the_error_names_the_key_and_all_goes_on_after_its_repair(client, broker, monkeypatch, caplog, name):
    quicken(monkeypatch)
    gate, key = Gate(broker), f"emq:q:{name}"
    client.hset("emq:q:meta", mapping={"max": 1_000, "duration": 60_000})
    broker.enqueue_many(message(number) for number in range(6))
    for number in range(6, 9):
        broker.enqueue(message(number), delay=1)

    with working(broker, worker_threads=1):
        assert gate.started.wait(20)
        had = client.rename(key, "saved") if client.exists(key) else False
        client.hset(key, "a", 1) if name == "limiter" else client.set(key, "a stranger's")
        gate.may_end.set()
        wait_until(lambda: f"{key} is a" in caplog.text)
        if name in TO_FETCH:  # what has run is finished meanwhile
            wait_until(lambda: client.zcard("emq:q:completed") >= 1)
            assert "post_process_message" not in caplog.text
        client.rename("saved", key) if had else client.delete(key)
        wait_until(lambda: client.zcard("emq:q:completed") == 9)

    assert sorted(gate.ran) == [*range(9)]
    assert "WRONGTYPE" not in caplog.text
    assert not broker.in_flight.all()


def test_threads_that_cannot_tell_how_their_jobs_ended_are_free_for_no_other_queue(client, broker, caplog):
    """Each waits some seconds before it tries again. Jobs that were fetched for it would be kept from other workers."""
    gate, others = Gate(broker), []
    dramatiq.actor(others.append, actor_name="other", queue_name="other", broker=broker)
    broker.enqueue_many(message(number) for number in range(3))

    with working(broker, worker_threads=3):
        wait_until(lambda: len(gate.ran) == 3)
        client.rename("emq:q:active", "saved")
        client.set("emq:q:active", "a stranger's")
        gate.may_end.set()
        wait_until(lambda: caplog.text.count("Failed to post_process_message") == 3)
        broker.enqueue_many(message(number, actor="other", queue="other") for number in range(3))
        wait_until(lambda: "other" in broker.in_flight.threads.turns.waiting)
        assert (client.llen("emq:other:active"), client.llen("emq:other:wait")) == (0, 3)
        client.rename("saved", "emq:q:active")
        broker.join("other", timeout=20_000)

    assert sorted(others) == [0, 1, 2]
    assert client.zcard("emq:q:completed") == 3
    assert not broker.in_flight.all()


def test_suspects_that_are_skipped_stay_where_they_were_without_a_counter_of_priorities(client, broker):
    suspects = {f"s{number:03}": 3 * 2**32 + number for number in range(101)}
    put(client, prioritized=suspects, jobs={key: {"stc": "1", "priority": "3"} for key in suspects})
    queue, fetch = broker.channel("q").queue, Fetch("call", 1, suspects=0)
    queue.finish_and_fetch([], fetch)  # looks at all keys, and finds nothing wrong
    before = state(client)["prioritized"]
    client.delete("emq:q:pc")
    client.hset("emq:q:pc", "a", 1)

    assert queue.finish_and_fetch([], fetch).jobs == []
    assert state(client)["prioritized"] == before
    assert "active" not in state(client)
