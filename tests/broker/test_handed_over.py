"""The call that finishes a job fetches for its thread, and what it fetches is handed over at once."""

from __future__ import annotations

import logging
import sys
import threading
import time

import dramatiq
import pytest
from dramatiq.worker import ConsumerThread

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working
from ..support.job_data import message
from ..support.queue_data import state
from ..support.servers import wait_until


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


@pytest.fixture
def ran(broker) -> list:
    ran: list = []
    dramatiq.actor(ran.append, actor_name="work", queue_name="q", broker=broker)
    return ran


def handled_by(monkeypatch) -> list[str]:
    """The names of the threads that put messages into the worker's queue, from now on."""
    names = []
    handle = ConsumerThread.handle_message

    def handle_message(self, message):
        names.append(type(threading.current_thread()).__name__)
        return handle(self, message)

    monkeypatch.setattr(ConsumerThread, "handle_message", handle_message)
    return names


@pytest.mark.parametrize("threads", [1, 4])
def test_a_thread_that_becomes_free_needs_no_other_thread_to_go_on(broker, ran, monkeypatch, threads):
    names = handled_by(monkeypatch)
    broker.enqueue_many(message(number) for number in range(100))

    with working(broker, worker_threads=threads, worker_timeout=1_000):
        broker.join("q", timeout=20_000)

    assert sorted(ran) == [*range(100)]
    assert names.count("WorkerThread") >= 100 - 2 * threads


def test_what_is_not_simply_to_be_run_holds_up_nobody(client, broker):
    """Of an unknown actor, with data that nobody can read, or to be failed: the consumer sees to it."""
    ran = []

    @dramatiq.actor(queue_name="q", broker=broker)
    def work(number):
        time.sleep(0.002)  # so that the consumer waits for a thread
        ran.append(number)

    for number in range(30):
        broker.enqueue(message(number))
        broker.enqueue(message(number, actor="unknown"))
        client.lpush("emq:q:wait", f"bad{number}", f"deferred{number}")
        client.hset(f"emq:q:bad{number}", mapping={"name": "work", "data": "{", "opts": "{}"})
        client.hset(
            f"emq:q:deferred{number}", mapping={"name": "work", "data": "[1]", "opts": "{}", "defa": "by its parent"}
        )

    with working(broker, worker_threads=2):
        broker.join("q", timeout=30_000)

    assert sorted(ran) == [*range(30)]
    assert client.zcard("emq:q:failed") == 90
    assert "active" not in state(client)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_job_whose_handing_over_was_interrupted_is_given_back_and_runs(broker, ran, monkeypatch):
    """An interrupt that comes late ends the thread of an actor between any two steps."""
    handle = ConsumerThread.handle_message
    interrupted = []

    def handle_message(self, message):
        if message.args == (3,) and not interrupted:
            interrupted.append(message.message_id)
            raise SystemExit
        return handle(self, message)

    monkeypatch.setattr(ConsumerThread, "handle_message", handle_message)
    monkeypatch.setattr("dramatiq_echomq.broker.lock_renewer.ROUNDS_PER_LOCK", 60)  # each looks for dead threads
    broker.enqueue_many(message(number) for number in range(6))

    with working(broker, worker_threads=2):
        wait_until(lambda: len(ran) == 6, 20)

    assert interrupted
    assert sorted(ran) == [*range(6)]


def test_threads_that_take_from_the_same_messages_are_in_nobody_s_way(client, broker, ran, caplog):
    """Each of them may be stopped between any two steps."""
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with working(broker, worker_threads=8, worker_timeout=1):
            for _ in range(10):
                broker.enqueue_many(message(number) for number in range(100))
                wait_until(lambda: client.llen("emq:q:wait") < 20)
            broker.join("q", timeout=30_000)
    finally:
        sys.setswitchinterval(switch_interval)
    assert sorted(ran) == sorted([*range(100)] * 10)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
