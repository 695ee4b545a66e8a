"""How a consumer waits for a message."""

from __future__ import annotations

import threading
import time

import pytest

from ..support.job_data import add
from ..support.queue_data import put


def commands(client) -> dict[str, int]:
    """How often each command was called that consumers use."""
    stats = client.info("commandstats")
    return {name: stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "bzpopmin")}


def test_an_idle_consumer_returns_nothing_when_its_timeout_is_over(broker):
    started = time.monotonic()

    assert next(broker.consume("q", timeout=100)) is None

    assert 0.09 < time.monotonic() - started < 5


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
    assert woken - enqueued[0] < 5  # half of the consumer's timeout


def test_an_idle_consumer_wakes_when_a_delayed_message_is_due(broker):
    started = time.monotonic()
    add(broker, delay=150)
    consumer = broker.consume("q", timeout=10_000)

    found = next(consumer) or next(consumer) or next(consumer)

    assert found is not None
    assert 0.14 < time.monotonic() - started < 5


@pytest.mark.parametrize("score", [float("inf"), 2.0**75])
def test_an_idle_consumer_rests_beside_a_job_that_is_due_at_the_end_of_time(client, broker, score):
    put(client, delayed={"a": score}, marker={"1": score / 4096}, jobs={"a": {}})
    consumer, started = broker.consume("q", timeout=100), time.monotonic()
    before = sum(commands(client).values())

    assert [next(consumer) for _ in range(4)] == [None] * 4

    assert time.monotonic() - started > 0.25
    assert sum(commands(client).values()) - before < 15


@pytest.mark.parametrize(("timeout", "longest"), [(100, 0.1), (1_000, 1), (10_000, 10), (60_000, 10)])
def test_it_blocks_no_longer_than_the_sockets_last(client, broker, timeout, longest):
    consumer = broker.consume("q", timeout=timeout)

    assert consumer.longest_block == longest
    assert consumer.waiting_client.connection_pool.connection_kwargs["socket_timeout"] == longest + 5


def test_a_full_consumer_waits_for_a_free_slot_and_not_on_redis(client, broker):
    add(broker), add(broker)
    consumer = broker.consume("q", prefetch=1, timeout=50)
    first = next(consumer)
    before = commands(client)

    assert next(consumer) is None
    assert commands(client) == before

    consumer.timeout = 10
    later = threading.Timer(0.1, consumer.ack, [first])
    later.start()
    started = time.monotonic()
    assert (next(consumer) or next(consumer)) is not None
    assert time.monotonic() - started < 5
    later.join()


def test_one_call_takes_all_there_is_room_for(client, broker):
    for number in range(8):
        add(broker, number)
    consumer = broker.consume("q", prefetch=8, timeout=50)
    before = sum(commands(client).values())

    assert [next(consumer).args for _ in range(8)] == [(number,) for number in range(8)]

    assert sum(commands(client).values()) - before <= 2  # EVALSHA, and EVAL if the server did not know the script


@pytest.mark.parametrize("milliseconds", [1, 1.9])
def test_no_wait_is_so_short_that_it_is_for_ever(broker, monkeypatch, milliseconds):
    """Redis 6.2 makes whole ms of a timeout, and 0 of what is less than one."""
    timeouts = []
    consumer = broker.consume("q", timeout=milliseconds)
    monkeypatch.setattr(consumer.waiting_client, "bzpopmin", lambda _, timeout: timeouts.append(timeout))

    next(consumer)

    assert timeouts == [0.002]
