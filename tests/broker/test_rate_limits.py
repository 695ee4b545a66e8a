"""Rate limits: as BullMQ keeps them, in `meta.max`, `meta.duration` and `limiter`."""

from __future__ import annotations

import time
from itertools import pairwise

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.queue import Fetch

from ..support.brokers import working
from ..support.job_data import JOB, fetched_at
from ..support.queue_data import put
from ..support.servers import wait_until

BY_HAND = str(2**53 - 1)


def fetch(client, count: int = 5):
    queue = EchoMQBroker(client=client, middleware=[]).channel("q").queue
    return queue.finish_and_fetch([], Fetch("call", count, count))


def put_jobs(client, *ids: str, **more) -> None:
    put(client, wait=list(ids), jobs=dict.fromkeys(ids, JOB), **more)


def test_no_more_jobs_are_fetched_in_a_window_than_the_limit_allows(client):
    put_jobs(client, *"abcde", meta={"max": "3", "duration": "60000"})

    assert [len(fetch(client, 2).jobs) for _ in range(3)] == [2, 1, 0]

    assert client.get("emq:q:limiter") == b"3"
    assert 50_000 < fetch(client).limited_for <= 60_000
    assert client.llen("emq:q:wait") == 2
    assert client.zscore("emq:q:marker", "0") == 0


def test_a_new_window_begins_with_the_first_fetch_after_the_last_one(client):
    put_jobs(client, *"ab", meta={"max": "1", "duration": "60000"})

    assert len(fetch(client).jobs) == 1
    assert 50_000 < fetch(client).limited_for <= 60_000
    client.pexpire("emq:q:limiter", 1)
    time.sleep(0.01)

    assert len(fetch(client).jobs) == 1
    assert client.get("emq:q:limiter") == b"1"
    assert 50_000 < client.pttl("emq:q:limiter") <= 60_000


@pytest.mark.parametrize("left_over", ["7", "odd"])
def test_a_new_window_begins_where_a_count_was_left_that_would_never_end(client, left_over):
    put_jobs(client, *"abc", meta={"max": "2", "duration": "60000"}, limiter=left_over)

    assert [len(fetch(client).jobs) for _ in range(2)] == [2, 0]

    assert client.get("emq:q:limiter") == b"2"
    assert 50_000 < client.pttl("emq:q:limiter") <= 60_000


@pytest.mark.parametrize("meta", [{"version": "1"}, {"max": "1000", "duration": "1000"}])
def test_a_limit_that_another_runtime_has_set_for_a_time_holds(client, meta):
    put_jobs(client, "a", meta=meta)
    client.set("emq:q:limiter", BY_HAND, px=40_000)

    reply = fetch(client)

    assert reply.jobs == []
    assert 30_000 < reply.limited_for <= 40_000


@pytest.mark.parametrize(
    ("meta", "limiter"),
    [
        ({"max": "1", "duration": "1000"}, "7"),  # without a TTL it would never end
        ({"max": "1", "duration": "1000"}, "odd"),
        ({"max": "many", "duration": "1000"}, "7"),
        ({"max": "1"}, "7"),
        ({"max": "1", "duration": "odd"}, "7"),
        ({"version": "1"}, "7"),  # the count of a worker that has a limit of its own
    ],
)
def test_what_is_no_limit_stops_nobody(client, meta, limiter):
    put_jobs(client, "a", meta=meta, limiter=limiter)
    assert len(fetch(client).jobs) == 1


def test_a_job_that_is_only_failed_does_not_count(client):
    put(client, wait=["a"], jobs={"a": {**JOB, "defa": "child failed"}}, meta={"max": "1", "duration": "60000"})
    assert len(fetch(client).jobs) == 1
    assert not client.exists("emq:q:limiter")


def test_delayed_jobs_that_are_due_become_available_in_spite_of_a_limit(client):
    put(client, delayed={"a": 4096}, jobs={"a": JOB})
    client.set("emq:q:limiter", BY_HAND, px=40_000)

    assert fetch(client).limited_for

    assert client.lrange("emq:q:wait", 0, -1) == [b"a"]


def test_a_worker_waits_until_the_limit_ends_and_asks_seldom_meanwhile(client):
    broker = EchoMQBroker(client=client, middleware=[])
    actor = dramatiq.actor(lambda: None, actor_name="work", queue_name="q", broker=broker)
    put(client, meta={"max": "1", "duration": "300"})
    for _ in range(3):
        actor.send()

    before = client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
    with working(broker, worker_timeout=1_000):
        wait_until(lambda: client.zcard("emq:q:completed") == 3)
    calls = client.info("commandstats")["cmdstat_evalsha"]["calls"] - before

    assert all(later - earlier > 280 for earlier, later in pairwise(fetched_at(client)))
    assert calls < 60
