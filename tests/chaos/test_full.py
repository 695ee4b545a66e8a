"""A Redis at its `maxmemory` that evicts nothing: jobs end and come back, and only new ones are refused."""

from __future__ import annotations

import json

import pytest
import redis

from dramatiq_echomq import EchoMQBroker, StalledChecker

from ..support.job_data import JOB, add, nack, take
from ..support.queue_data import FIELDS, put, state
from ..support.servers import Server


@pytest.fixture(scope="module")
def server():
    with Server("--maxmemory-policy", "noeviction") as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        client.config_set("maxmemory", 0)
        client.flushdb()
        yield client


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


def fill(client) -> None:
    client.config_set("maxmemory", 1)


LINK = {"parentKey": "emq:q:p", "parent": json.dumps({"id": "p", "queueKey": "emq:q"})}
FAMILY = {"jobs": {"a": {**JOB, **LINK, "deid": "d"}, "p": FIELDS}, "waiting_children": {"p": 1}}
NEXT = {"dn:d": {"name": "work", "data": "[2]", "opts": "{}", "jid": "n"}, "p:dependencies": {"emq:q:a"}}


@pytest.mark.parametrize("end", ["ack", "nack"])
def test_jobs_finish_with_all_that_belongs_to_it(client, broker, end):
    put(client, wait=["a"], **FAMILY, **NEXT)
    consumer, [message] = take(broker)
    fill(client)

    getattr(consumer, end)(message)

    found = state(client)
    assert set(found["completed" if end == "ack" else "failed"]) == {"a"}
    assert found["n"]["data"] == "[2]"
    assert ("p" in found["wait"]) is (end == "ack")


def test_jobs_are_fetched_and_given_back(client, broker):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB), delayed={"b": 4096})
    fill(client)

    consumer, messages = take(broker, 2)
    consumer.requeue(messages)

    assert state(client)["locks"] == set()
    assert state(client)["wait"][-1] == "a"


def test_jobs_are_retried(client, broker):
    put(client, failed={"a": 1}, jobs={"a": JOB})
    fill(client)

    assert broker.retry("q", "a")

    assert state(client)["wait"] == ["a"]


@pytest.mark.parametrize("check", [StalledChecker.check, StalledChecker.sweep])
@pytest.mark.parametrize("batch_size", [1, 1000])
def test_stalled_jobs_come_back_or_fail(client, check, batch_size):
    put(client, active=["b", "a"], jobs={"a": {}, "b": {"stc": "1"}})
    checker = StalledChecker(client, stalled_interval=100, batch_size=batch_size)
    fill(client)

    while check(checker, "q").marked != 2:
        pass
    while (found := check(checker, "q")).skipped:
        pass

    assert (found.recovered_ids, found.failed_ids) == (("a",), ("b",))
    assert state(client)["wait"] == ["a"]


def test_a_queue_is_paused_and_resumed(client, broker):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    fill(client)

    broker.pause("q")
    assert take(broker)[1] == []
    broker.resume("q")

    assert len(take(broker)[1]) == 1


def test_new_jobs_are_refused_before_anything_is_written(client, broker):
    fill(client)

    for options in ({}, {"delay": 9_000}, {"broker_priority": 3}):
        with pytest.raises(redis.RedisError, match="maxmemory"):
            add(broker, **options)

    assert state(client) == {"locks": set()}


def test_what_fails_is_kept_with_its_reason(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    fill(client)

    nack(broker)

    assert state(client)["a"]["failedReason"] == "Boom: it broke"
