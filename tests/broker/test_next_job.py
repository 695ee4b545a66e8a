"""A job that waits for the end of another with its deduplication id (BullMQ's keepLastIfActive)."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import EchoMQBroker, QueueInspector, StalledChecker

from ..support.brokers import lines
from ..support.job_data import ack, nack, take
from ..support.queue_data import FIELDS, NOW, WOKEN, put, state

pytestmark = pytest.mark.usefixtures("clock")

OPTS = {"de": {"id": "x", "keepLastIfActive": True}}
NEXT = {"name": "work", "data": "[2]", "opts": json.dumps(OPTS), "jid": "b"}


def put_pair(client, *, stored=None, job=None, **queue) -> None:
    put(client, wait=["a"], jobs={"a": {"data": "[1]", "deid": "x", **(job or {})}}, **queue)
    put(client, **{"de:x": "a", "dn:x": NEXT | (stored or {})})


def stall_out(broker: EchoMQBroker) -> None:
    """Take one job, and let it stall too often."""
    take(broker)
    broker.client.delete("emq:q:a:lock")
    checker = StalledChecker(broker.client, max_stalled_count=0)
    checker.check("q")
    assert checker.check("q").failed == 1


def forbid(broker: EchoMQBroker) -> None:
    """Ack one job that may not complete before its child."""
    put(broker.client, **{"a:dependencies": {"emq:q:child"}})
    ack(broker)


ENDS = pytest.mark.parametrize("end", [ack, nack, stall_out, forbid])


@ENDS
@pytest.mark.parametrize("own", [{}, {"opts": '{"removeOnComplete": true, "removeOnFail": true}'}], ids=["kept", "not"])
def test_is_added_when_the_other_has_ended(client, broker, end, own):
    put_pair(client, job=own)

    end(broker)

    found = state(client)
    assert found["b"] == {
        "name": "work",
        "data": "[2]",
        "opts": NEXT["opts"],
        "timestamp": str(NOW),
        "delay": "0",
        "priority": "0",
        "deid": "x",
    }
    assert (found["wait"], found["marker"], found["de:x"], found["id"]) == (["b"], WOKEN, "b", "1")
    assert "dn:x" not in found
    assert [said["event"] for said in found["events"] if said.get("jobId") == "b"] == ["added", "waiting"]
    assert {"event": "drained"} not in found["events"]


@ENDS
def test_runs_in_its_turn_and_leaves_nothing_over(client, broker, end):
    put_pair(client)

    end(broker)
    ack(EchoMQBroker(client=client, middleware=[]))

    found = state(client)
    assert found["completed"]["b"] == NOW
    assert not {"de:x", "dn:x", "wait", "active"} & found.keys()


@pytest.mark.parametrize(
    ("opts", "queue", "where"),
    [
        ({"delay": 500}, {}, {"delayed": {"b": (NOW + 500) * 4096}}),
        ({"priority": 3}, {}, {"prioritized": {"b": 3 * 2**32 + 1}}),
        ({}, {"meta": {"paused": "1"}}, {"paused": ["b"]}),
        ({}, {"wait": ["z"]}, {"wait": ["b", "z"]}),
        ({"lifo": True}, {"wait": ["z"]}, {"wait": ["z", "b"]}),
        ({"lifo": None, "delay": "odd", "priority": []}, {"wait": ["z"]}, {"wait": ["b", "z"]}),
    ],
    ids=["a delay", "a priority", "a paused queue", "others waiting", "lifo", "odd opts"],
)
def test_goes_to_where_its_opts_say(client, broker, opts, queue, where):
    put_pair(client, stored={"opts": json.dumps({**OPTS, **opts})})
    consumer, [message] = take(broker)
    put(client, **queue)

    consumer.ack(message)

    found = state(client)
    assert {name: found[name] for name in where} == where


@pytest.mark.parametrize(
    ("rule", "ttl"), [({"ttl": 5_000}, 5_000), ({"ttl": 5_000, "keepLastIfActive": True}, -1), ({}, -1), ("odd", -1)]
)
def test_keeps_others_away_as_long_as_it_says(client, broker, rule, ttl):
    put_pair(client, stored={"opts": json.dumps({"de": rule})})

    ack(broker)

    assert client.get("emq:q:de:x") == b"b"
    left = client.pttl("emq:q:de:x")
    assert left == ttl or ttl - 4_000 < left <= ttl


@pytest.mark.parametrize("own_id", ["a", "wait", "meta", None], ids=["the other job's", "a key", "no key yet", "none"])
def test_gets_an_id_of_its_own_where_it_has_none_that_is_free(client, broker, own_id):
    put_pair(client)
    client.set("emq:q:id", 7)
    client.hdel("emq:q:dn:x", "jid")
    if own_id:
        client.hset("emq:q:dn:x", "jid", own_id)

    ack(broker)

    found = state(client)
    assert found["wait"] == ["8"]
    assert found["8"]["data"] == "[2]"
    assert found["de:x"] == "8"


@pytest.mark.parametrize("used", [1, 2, 3, 500])
def test_gets_a_free_id_though_the_counter_of_ids_was_lost(client, broker, used):
    put_pair(client, stored={"jid": "a"})
    put(client, jobs={str(number): {} for number in range(1, used + 1)})

    ack(broker)

    found = state(client)
    [job_id] = found["wait"]
    assert int(job_id) > used
    assert (found["id"], found[job_id]["data"]) == (job_id, "[2]")


@pytest.mark.parametrize("parent", [{"p": {}}, {}], ids=["a parent", "a parent that is gone"])
def test_is_the_child_of_its_parent(client, broker, parent):
    put(client, "up", jobs=parent)
    link = json.dumps({"id": "p", "queueKey": "emq:up"})
    put_pair(client, stored={"pk": "emq:up:p", "pd": link, "pdk": "emq:up:p:dependencies", "rjk": "every"})

    ack(broker)

    job = state(client)["b"]
    assert (job["parentKey"], job["parent"], job["rjk"]) == ("emq:up:p", link, "every")
    assert client.smembers("emq:up:p:dependencies") == ({b"emq:q:b"} if parent else set())


def test_stays_stored_and_is_told_of_when_it_cannot_be_added(client, broker, caplog):
    put_pair(client)
    consumer, [message] = take(broker)
    put(client, prioritized="text")
    consumer.ack(message)

    found = state(client)
    assert found["completed"] == {"a": NOW}
    assert found["dn:x"] == NEXT
    [line] = lines(caplog, "WARNING")
    assert "emq:q:prioritized is a string and should be a zset" in line


@pytest.mark.parametrize("holder", ["a", "z", None], ids=["the other", "a third", "none"])
def test_is_added_when_the_other_is_removed(client, broker, holder):
    """It came back to wait after a stall, or its worker has lost it."""
    put_pair(client)
    if holder != "a":
        client.delete("emq:q:de:x")
    if holder == "z":
        client.set("emq:q:de:x", "z")

    assert QueueInspector(client).remove("q", ["a"])

    found = state(client)
    assert (found.get("wait"), "dn:x" in found) == ((["b"], False) if holder == "a" else (None, True))


def requeue(consumer, message) -> None:
    consumer.requeue([message])


def sweep(consumer, message) -> None:
    assert StalledChecker(consumer.broker.client).check("q").dropped == 1


GONE_ENDS = {
    "acked": (lambda consumer, message: consumer.ack(message), ["lock", "no lock"]),
    "nacked": (lambda consumer, message: consumer.nack(message), ["lock", "no lock"]),
    "requeued": (requeue, ["lock", "no lock"]),
    "swept": (sweep, ["no lock"]),
}


def take_and_lose_hash(client, broker, lock="lock"):
    """Take one job for whose end another waits, and remove its hash."""
    put_pair(client)
    consumer, [message] = take(broker)
    client.xadd(
        "emq:q:events", {"event": "deduplicated", "jobId": "a", "deduplicationId": "x", "deduplicatedJobId": "b"}
    )
    client.delete("emq:q:a", *(["emq:q:a:lock"] if lock == "no lock" else []))
    return consumer, message


@pytest.mark.parametrize(("end", "lock"), [(end, lock) for end, (_, locks) in GONE_ENDS.items() for lock in locks])
def test_is_added_when_the_hash_of_the_other_is_gone(client, broker, end, lock):
    consumer, message = take_and_lose_hash(client, broker, lock)

    GONE_ENDS[end][0](consumer, message)

    found = state(client)
    assert (found["wait"], found["de:x"]) == (["b"], "b")
    assert not {"a", "active", "dn:x"} & found.keys()


@pytest.mark.parametrize("end", GONE_ENDS)
def test_stays_when_it_waits_for_another_than_the_one_that_is_gone(client, broker, end):
    consumer, message = take_and_lose_hash(client, broker, "no lock")
    client.set("emq:q:de:x", "z")

    GONE_ENDS[end][0](consumer, message)

    found = state(client)
    assert ("wait" in found, found["de:x"], found["dn:x"]) == (False, "z", NEXT)


def test_goes_with_a_queue_that_is_flushed(client, broker):
    put_pair(client)

    broker.flush("q")

    assert state(client) == {"locks": set()}


def test_is_not_looked_for_by_a_job_without_a_deduplication_id(client, broker):
    put(client, wait=["a"], jobs={"a": FIELDS}, **{"dn:x": NEXT})

    ack(broker)

    assert state(client)["dn:x"] == NEXT
