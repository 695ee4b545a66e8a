"""A job whose hash is gone, since somebody removed it or Redis evicted it, is not made up again."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker
from dramatiq_echomq.protocol.keys import QueueKeys
from dramatiq_echomq.protocol.scripts import load

from ..support.brokers import lines
from ..support.job_data import JOB, take
from ..support.queue_data import NOW, WOKEN, put, state

pytestmark = pytest.mark.usefixtures("clock")


def acks(broker, consumer, message):
    consumer.ack(message)


def nacks(broker, consumer, message):
    message.stuff_exception(ValueError("it broke"))
    consumer.nack(message)


def requeues(broker, consumer, message):
    consumer.requeue([message])


def renews(broker, consumer, message):
    broker.locks.renew()


def recovers(broker, consumer, message):
    broker.client.delete("emq:q:a:lock")
    checker = StalledChecker(broker.client)
    checker.check("q")
    checker.check("q")


def advances(broker, consumer, message):
    """As for a job of a job scheduler, whose next one must be added."""
    put(broker.client, repeat={"s": 1_000}, **{"repeat:s": {"name": "work", "every": "60000"}})
    keys = QueueKeys("q")
    load("advanceScheduler-1.lua")(broker.client, [keys.meta], [keys.base, "s", "repeat:s:1000", NOW, NOW + 9, "{}"])
    assert "repeat:s:1000" not in state(broker.client)
    assert broker.client.zscore("emq:q:repeat", "s") > 1_000


ENDS = [acks, nacks, requeues]


@pytest.mark.parametrize("do", [*ENDS, recovers, renews, advances])
@pytest.mark.parametrize("has_lock", [True, False], ids=["locked", "lockless"])
def test_nothing_writes_the_hash_of_a_job_that_is_gone(client, broker, do, has_lock):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)
    client.delete("emq:q:a", *([] if has_lock else ["emq:q:a:lock"]))

    do(broker, consumer, message)

    assert "a" not in state(client)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("has_lock", [True, False], ids=["locked", "lockless"])
def test_its_end_leaves_nothing_of_it_and_says_so(client, broker, end, has_lock, caplog):
    put(client, wait=["b", "a"], jobs={"a": JOB, "b": JOB}, meta={"concurrency": "1"}, stalled={"a"})
    consumer, [message] = take(broker)
    client.delete("emq:q:a", *([] if has_lock else ["emq:q:a:lock"]))

    end(broker, consumer, message)

    found = state(client)
    assert found["locks"] == set()
    assert not {"active", "completed", "failed", "stalled"} & found.keys()
    assert (found["wait"], found["marker"]) == (["b"], WOKEN)
    [line] = lines(caplog, "WARNING", "ERROR")
    assert "'a'" in line
    assert "'q'" in line


def test_a_job_that_another_holds_is_left_to_it(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)
    client.delete("emq:q:a")
    client.set("emq:q:a:lock", "of another worker")

    consumer.ack(message)

    assert (state(client)["active"], state(client)["locks"]) == (["a"], {"a"})


def test_a_due_job_that_is_gone_is_not_made_up(client, broker):
    put(client, delayed={"a": 5 * 4096})

    take(broker)

    assert not {"a", "delayed", "active"} & state(client).keys()


@pytest.mark.parametrize(
    "ghost", [None, {"failedReason": "x", "finishedOn": "5", "atm": "1"}], ids=["no hash", "ghost"]
)
def test_a_failed_job_that_is_gone_cannot_be_retried(client, broker, ghost):
    """Earlier versions, and others, have left hashes without a name and data in `failed`."""
    put(client, failed={"a": NOW})
    if ghost:
        client.hset("emq:q:a", mapping=ghost)

    assert broker.retry("q", "a") is False

    assert state(client) == {"locks": set()}
