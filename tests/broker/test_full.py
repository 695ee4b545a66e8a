"""Redis at its `maxmemory`: what has started goes on, ends, and comes back; what is new waits."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import EchoMQBroker, StalledChecker, StalledCheckerMiddleware

from ..support.brokers import lines
from ..support.faults import Log, quicken, recording_actor, running
from ..support.job_data import JOB, add, take
from ..support.queue_data import put, state
from ..support.servers import wait_until


@pytest.fixture
def client(server):
    """A client of a server that can be filled."""
    with server.client() as client:
        client.flushall()
        yield client
        client.config_set("maxmemory", 0)


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


def fill(client) -> None:
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.ResponseError, match="maxmemory"):
        client.set("new", "x")


@pytest.mark.parametrize("how", ["ack", "nack"])
def test_a_job_ends(client, broker, how):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [job] = take(broker)
    fill(client)

    getattr(consumer, how)(job)

    found = state(client)
    assert found["completed" if how == "ack" else "failed"]
    assert not found["locks"]


def test_jobs_are_given_back(client, broker):
    put(client, wait=["b", "a"], jobs={"a": JOB, "b": JOB})
    consumer, jobs = take(broker, 2)
    fill(client)

    consumer.requeue(jobs)

    assert state(client)["wait"] == ["b", "a"]


@pytest.mark.parametrize("from_", ["wait", "prioritized", "delayed"])
def test_jobs_that_wait_are_fetched(client, broker, from_):
    waiting = {"wait": ["a"]} if from_ == "wait" else {from_: {"a": 1}}
    put(client, **waiting, jobs={"a": JOB})
    fill(client)

    assert len(take(broker)[1]) == 1


@pytest.mark.parametrize(("stalls", "target"), [(0, "wait"), (1, "failed")])
def test_stalled_jobs_are_recovered(client, stalls, target):
    put(client, active=["a"], jobs={"a": {**JOB, "stc": str(stalls)}})
    fill(client)

    checker = StalledChecker(client)
    checker.check("q")
    checker.check("q")

    assert "a" in state(client)[target]


def test_a_new_message_is_refused_and_leaves_nothing(client, broker):
    add(broker)
    before = state(client)
    fill(client)

    with pytest.raises(redis.ResponseError, match="maxmemory"):
        add(broker)

    assert state(client) == before


def test_no_worker_loses_a_job_and_none_runs_twice(client, monkeypatch, caplog):
    quicken(monkeypatch)
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100))
    recording_actor(broker, log)
    for number in range(36):
        add(broker, number)
    log.gate.clear()
    with running(broker, threads=8):
        wait_until(lambda: client.llen("emq:q:active") >= 8)
        fill(client)
        locks = client.keys("emq:q:*:lock")
        for lock in locks:
            client.pexpire(lock, 18_000)
        broker.locks.renew()
        assert [lock for lock in locks if client.pttl(lock) <= 18_000] == []
        log.gate.set()
        wait_until(lambda: client.zcard("emq:q:completed") == 36)
    assert sorted(log.ran) == list(range(36))
    assert not lines(caplog, "WARNING", "ERROR")


def test_a_scheduler_goes_on(client, broker):
    put(
        client,
        wait=["repeat:often:1"],
        jobs={"repeat:often:1": {**JOB, "rjk": "often", "opts": '{"repeat": {"every": 1000, "count": 1}}'}},
        repeat={"often": 1},
    )
    client.hset("emq:q:repeat:often", mapping={"name": "work", "data": "[]", "ic": "1", "every": "1000"})
    fill(client)

    assert len(take(broker)[1]) == 1
    assert len(state(client)["delayed"]) == 1
