"""How a consumer waits for a message."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.queue import Fetch

from ..support.brokers import working
from ..support.job_data import add, id_of, take
from ..support.queue_data import commands_so_far, put, state
from ..support.servers import wait_until


def test_an_idle_consumer_returns_nothing_when_its_timeout_is_over(broker):
    consumer = broker.consume("q", timeout=100)
    started = time.monotonic()

    assert next(consumer) is None

    assert 0.09 < time.monotonic() - started < 9
    consumer.close()  # or it might take the marker of the next test


def test_an_idle_consumer_wakes_at_once_for_a_message(broker):
    enqueued = []

    def enqueue():
        enqueued.append(time.monotonic())
        add(broker)

    later = threading.Timer(0.1, enqueue)
    later.start()
    consumer = broker.consume("q", timeout=10_000)
    found = next(consumer) or next(consumer)
    woken = time.monotonic()
    later.join()

    assert found is not None
    assert woken - enqueued[0] < 9  # the consumer's timeout is longer


def test_an_idle_consumer_wakes_when_a_delayed_message_is_due(broker):
    started = time.monotonic()
    add(broker, delay=150)
    consumer = broker.consume("q", timeout=10_000)

    found = next(consumer) or next(consumer) or next(consumer)

    assert found is not None
    assert 0.14 < time.monotonic() - started < 9


@pytest.mark.parametrize(
    ("delays", "seconds"), [((), 10), ((60_000,), 10), ((9_000,), 9), ((60_000, 9_000), 9)], ids=str
)
def test_an_idle_consumer_lets_redis_wait_for_10_s_or_until_the_next_job_is_due(client, broker, delays, seconds):
    for delay in delays:
        add(broker, delay=delay)
    consumer = broker.consume("q", timeout=1)

    with client.monitor() as monitor:
        assert [next(consumer), next(consumer)] == [None, None]
        commands = (entry["command"].split() for entry in monitor.listen())
        waits = next(words for words in commands if words[0] == "BZPOPMIN")
    consumer.close()

    assert waits[1] == "emq:q:marker"
    assert (float(waits[2]) == 10) if seconds == 10 else (2 < float(waits[2]) <= seconds)


@pytest.mark.parametrize("score", [float("inf"), 2.0**75])
def test_an_idle_consumer_rests_beside_a_job_that_is_due_at_the_end_of_time(client, broker, score):
    put(client, delayed={"a": score}, marker={"1": score / 4096}, jobs={"a": {}})
    consumer, started = broker.consume("q", timeout=100), time.monotonic()
    before = sum(commands_so_far(client).values())

    assert [next(consumer) for _ in range(4)] == [None] * 4

    assert time.monotonic() - started > 0.25
    assert sum(commands_so_far(client).values()) - before < 15


def test_a_full_consumer_waits_for_a_free_slot_and_not_on_redis(client, broker):
    add(broker), add(broker)
    consumer = broker.consume("q", prefetch=1, timeout=50)
    first = next(consumer)
    before = commands_so_far(client)

    assert next(consumer) is None
    assert commands_so_far(client) == before

    consumer.timeout = 10
    later = threading.Timer(0.1, consumer.ack, [first])
    later.start()
    started = time.monotonic()
    assert (next(consumer) or next(consumer)) is not None
    assert time.monotonic() - started < 9
    later.join()


def test_one_call_takes_all_there_is_room_for(client, broker):
    for number in range(8):
        add(broker, number)
    consumer = broker.consume("q", prefetch=8, timeout=50)
    before = sum(commands_so_far(client).values())

    assert [next(consumer).args for _ in range(8)] == [(number,) for number in range(8)]

    assert (
        sum(commands_so_far(client).values()) - before <= 2
    )  # EVALSHA, and EVAL if the server did not know the script


def test_an_idle_fetch_is_a_handful_of_commands(client, broker):
    consumer = broker.consume("q", timeout=1)
    next(consumer), consumer.close()
    client.config_resetstat()

    next(broker.consume("q", timeout=1))

    assert sum(each["calls"] for name, each in client.info("commandstats").items() if name != "cmdstat_info") <= 14


def test_a_marker_that_no_thread_is_free_for_is_left_to_others(client, broker):
    """Another queue took the threads while the worker was idle in this one."""
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    idle, busy = broker.consume("q", timeout=20), broker.consume("other", timeout=20)
    assert next(idle) is None
    add(broker, queue="other")
    running = next(busy) or next(busy)
    assert running is not None

    job = add(broker)
    assert [next(idle) for _ in range(3)] == [None] * 3

    assert state(client)["marker"] == {"0": 0}
    other = EchoMQBroker(client=client, middleware=[])
    assert id_of(take(other)[1][0]) == id_of(job)
    idle.close(), busy.close()
    broker.emit_after("worker_shutdown", None)


@pytest.mark.parametrize("paused", [False, True])
def test_a_fetch_that_finds_nothing_leaves_no_marker_that_says_otherwise(client, broker, paused):
    """Or many queues that share few threads would wake each other for ever."""
    put(client, marker={"0": 0, "1": 5}, meta={"version": "bullmq:5", **({"paused": "1"} if paused else {})})

    broker.channel("q").queue.finish_and_fetch([], Fetch("call", 1))

    assert state(client)["marker"] == ({"0": 0, "1": 5} if paused else {"1": 5})


def test_more_queues_than_threads_rest_when_they_are_empty(client, broker):
    done: list[int] = []
    for number in range(12):

        @dramatiq.actor(broker=broker, queue_name=f"q{number}", actor_name=f"work{number}")
        def work(number):
            done.append(number)

        for _ in range(5):
            work.send(number)

    with working(broker, worker_threads=2):
        wait_until(lambda: len(done) == 60)
        assert wait_until(lambda: _is_at_rest(client))


def _is_at_rest(client) -> bool:
    """Whether nothing is asked for a while."""
    before = commands_so_far(client)
    time.sleep(0.5)
    return commands_so_far(client) == before
