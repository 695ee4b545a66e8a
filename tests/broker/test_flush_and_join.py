"""Flush, join and counts: what is done with all jobs of a queue."""

from __future__ import annotations

import threading
import time

import pytest
from dramatiq.errors import QueueJoinTimeout

from dramatiq_echomq import EchoMQBroker, QueueCounts, QueueRefused

from ..support.job_data import JOB, add, take
from ..support.queue_data import META, WOKEN, as_data, dump, event, put, state
from ..support.servers import Server
from ..support.worker_data import register, registered, registration

EVERYWHERE = {
    "wait": ["w"],
    "paused": ["p"],
    "active": ["a"],
    "delayed": {"d": 4096},
    "prioritized": {"h": 2**32},
    "completed": {"c": 1},
    "failed": {"f": 2},
    "waiting_children": {"k": 3},
}
JOBS = dict.fromkeys("wpadhcfk", JOB)
OTHER_KEYS = {
    "stalled": {"a"},
    "marker": WOKEN,
    "pc": "4",
    "id": "9",
    "stalled_check": "1",
    "w:logs": ["a line"],
    "k:dependencies": {"emq:q:w"},
    "k:processed": {"emq:q:c": "1"},
    "de:x": "w",
    "repeat": {"daily": 5},
    "repeat:daily": {"every": "1000"},
    "limiter": "3",
    "stalled_check:last": "1",
    "stalled_check:hold": "4f2e.17/3@1",
    "stalled_check:untold": {"f": 1},
    "stalled_check:untold:jobs": {"f": "x"},
    "a:released": "token",
    "metrics:completed": {"count": "4"},
    "metrics:completed:data": ["1", "3"],
    "metrics:failed": {"count": "1"},
    "metrics:failed:data": ["1"],
}


def put_everything(client, queue: str = "q") -> None:
    put(client, queue, jobs={**JOBS, "w": {**JOB, "deid": "x"}}, locks=["a"], meta=META, **EVERYWHERE, **OTHER_KEYS)
    client.xadd(f"emq:{queue}:events", event("added", "w"))


def test_flush_removes_every_job_and_leaves_the_meta(client, broker):
    put_everything(client)
    put_everything(client, "other")
    before = state(client, "other")

    broker.flush("q")

    assert client.keys("emq:q:*") == [b"emq:q:meta"]
    assert state(client) == as_data(meta=META)
    assert state(client, "other") == before


def test_flush_lets_a_deduplication_id_be_used_again(client, broker):
    """A key with a TTL would keep others away after its job; that of a job which is added meanwhile stays."""
    put(client, wait=["a", "b", "c"], jobs={job_id: {**JOB, "deid": f"of-{job_id}"} for job_id in "abc"})
    client.set("emq:q:de:of-a", "a", px=60_000)
    client.set("emq:q:de:of-b", "gone")
    client.set("emq:q:de:of-c", "new")
    put(client, jobs={"new": JOB})

    broker.flush("q")

    assert client.keys("emq:q:de:*") == [b"emq:q:de:of-c"]


def test_flush_leaves_the_registrations_of_workers(client, broker):
    put_everything(client)
    register(client, registration("a"))

    broker.flush("q")

    assert len(registered(client)) == 1


def test_flush_keeps_a_queue_paused(client, broker):
    put(client, paused=["p"], jobs={"p": JOB}, meta={"paused": "1"})

    broker.flush("q")

    assert state(client) == as_data(meta={"paused": "1"})


def test_flush_removes_more_than_one_call_does(client, broker):
    put(client, wait=[str(at) for at in range(2_500)], completed={f"c{at}": at for at in range(1_200)})

    broker.flush("q")

    assert client.keys() == []


def test_flush_all_flushes_the_declared_queues(client, broker):
    for queue in ("q", "other", "undeclared"):
        put_everything(client, queue)
    broker.declare_queue("q")
    broker.declare_queue("other")

    broker.flush_all()

    assert (state(client), state(client, "other")) == (as_data(meta=META), as_data(meta=META))
    assert len(state(client, "undeclared")) > 2


def test_flush_of_an_unfit_queue_is_refused(client, broker):
    put(client, meta={"version": "echomq:2"}, wait=["a"])
    before = dump(client)

    with pytest.raises(QueueRefused):
        broker.flush("q")

    assert dump(client) == before


@pytest.mark.parametrize("kind", ["wait", "paused", "active", "delayed", "prioritized"])
def test_join_waits_for_jobs_that_are_in(client, broker, kind):
    put(client, jobs=JOBS, **{kind: EVERYWHERE[kind]})

    with pytest.raises(QueueJoinTimeout):
        EchoMQBroker(client=client, middleware=[]).join("q", timeout=0, interval=1)


@pytest.mark.parametrize("kinds", [[], ["completed", "failed"], ["waiting_children"]], ids=str)
def test_join_returns_when_nothing_is_left_but(client, broker, kinds):
    put(client, jobs=JOBS, **{kind: EVERYWHERE[kind] for kind in kinds})

    broker.join("q", timeout=0)


def test_join_returns_when_the_last_job_is_done(client, broker):
    add(broker)
    consumer, [message] = take(broker)
    threading.Timer(0.1, consumer.ack, [message]).start()

    broker.join("q", timeout=10_000, interval=10)

    assert client.zcard("emq:q:completed") == 1


def test_join_gives_up_after_its_timeout(broker):
    add(broker)
    started = time.monotonic()

    with pytest.raises(QueueJoinTimeout):
        broker.join("q", timeout=100, interval=10)

    assert 0.1 <= time.monotonic() - started < 20


def test_the_counts_tell_how_many_jobs_are_in_each_state(client, broker):
    names = ["wait", "active", "delayed", "prioritized", "paused", "completed", "failed"]
    for count, name in enumerate(names, start=1):
        ids = [f"{name}{at}" for at in range(count)]
        put(client, **{name: ids if isinstance(EVERYWHERE[name], list) else dict.fromkeys(ids, 1)})

    assert broker.get_queue_message_counts("q") == QueueCounts(
        waiting=1, active=2, delayed=3, prioritized=4, paused=5, completed=6, failed=7
    )
    assert broker.get_queue_message_counts("q.DQ") == broker.get_queue_message_counts("q")


def test_jobs_are_counted_by_a_redis_that_is_out_of_memory():
    with Server() as server, server.client() as client:
        broker = EchoMQBroker(client=client, middleware=[])
        add(broker)
        client.config_set("maxmemory", 1)

        assert broker.get_queue_message_counts("q").waiting == 1
