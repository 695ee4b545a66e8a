"""What ack and nack leave in Redis."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from ..support.job_data import JOB, ack, add, added, ended, id_of, nack, raised, take
from ..support.queue_data import META, NOW, WOKEN, as_data, event, put, state

pytestmark = pytest.mark.usefixtures("clock")

DRAINED = {"event": "drained"}


def last_events(client, count: int) -> list[dict]:
    return state(client)["events"][-count:]


def test_an_acked_job_is_completed(client, broker):
    job = add(broker)
    put(client, stalled={id_of(job)})
    client.delete("emq:q:events", "emq:q:marker")

    ack(broker, {"x": [1]})

    assert state(client) == as_data(
        completed={id_of(job): NOW},
        jobs={id_of(job): {**added(job), **ended(returnvalue='{"x": [1]}')}},
        meta=META,
        id="1",
        events=[
            event("active", id_of(job), prev="waiting"),
            event("completed", id_of(job), returnvalue='{"x": [1]}', prev="active"),
            DRAINED,
        ],
    )


def test_a_nacked_job_is_failed(client, broker):
    job = add(broker)
    put(client, stalled={id_of(job)})
    client.delete("emq:q:events", "emq:q:marker")

    nack(broker)

    found = state(client)
    [trace] = json.loads(found[id_of(job)].pop("stacktrace"))
    assert trace.startswith("Traceback")
    assert trace.endswith("Boom: it broke\n")
    assert found == as_data(
        failed={id_of(job): NOW},
        jobs={id_of(job): {**added(job), **ended(failedReason="Boom: it broke")}},
        meta=META,
        id="1",
        events=[
            event("active", id_of(job), prev="waiting"),
            event("failed", id_of(job), failedReason="Boom: it broke", prev="active"),
            event("retries-exhausted", id_of(job), attemptsMade="1"),
            DRAINED,
        ],
    )


def test_a_job_that_is_failed_without_an_exception_says_so(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)

    consumer.nack(message)

    job = state(client)["a"]
    assert job["failedReason"] == "the message was failed without an exception"
    assert "stacktrace" not in job


@pytest.mark.parametrize("text", ["x" * 1_000_000, "\ud800", "ü\0\n"], ids=["long", "surrogate", "odd"])
def test_no_text_of_an_exception_keeps_its_job_from_failing(client, broker, text):
    put(client, wait=["a"], jobs={"a": JOB})

    nack(broker, raised(text))

    found = state(client)
    assert found["failed"] == {"a": NOW}
    assert len(found["a"]["failedReason"]) + len(found["a"]["stacktrace"]) < 200_000


class HasNoText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_exception_that_cannot_be_shown_fails_its_job_all_the_same(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})

    nack(broker, HasNoText())

    found = state(client)
    assert found["failed"] == {"a": NOW}
    assert found["a"]["failedReason"].startswith("HasNoText")


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), b"bytes"], ids=lambda result: type(result).__name__)
def test_a_result_that_is_not_json_becomes_null(client, broker, result):
    put(client, wait=["a"], jobs={"a": JOB})

    ack(broker, result)

    assert state(client)["a"]["returnvalue"] == "null"


@pytest.mark.parametrize("earlier", [{"atm": "2"}, {"atm": "odd"}])
def test_attempts_made_count_on(client, broker, earlier):
    put(client, wait=["a"], jobs={"a": {**JOB, **earlier}})

    ack(broker)

    assert state(client)["a"]["atm"] == ("3" if earlier == {"atm": "2"} else "1")


def test_success_forgets_the_failure_before_it(client, broker):
    put(client, wait=["a"], jobs={"a": {**JOB, "failedReason": "of an earlier attempt"}})

    ack(broker)

    assert "failedReason" not in state(client)["a"]


@pytest.mark.parametrize("end", ["ack", "nack"])
@pytest.mark.parametrize(
    ("rest", "is_drained"),
    [
        ({}, True),
        ({"wait": ["b"]}, False),
        ({"active": ["b"]}, False),
        ({"prioritized": {"b": 1}}, False),
        ({"delayed": {"b": (NOW + 9) * 4096}}, True),
    ],
    ids=["nothing", "a waiting job", "an active job", "a prioritized job", "a delayed job"],
)
def test_the_queue_is_drained_when_what_is_left_is(client, broker, rest, is_drained, end):
    put(client, wait=["a"], jobs={"a": JOB, "b": JOB})
    consumer, [message] = take(broker)
    put(client, **rest)

    getattr(consumer, end)(message)

    assert (last_events(client, 1) == [DRAINED]) is is_drained


def test_the_end_of_a_job_wakes_a_worker_of_a_queue_at_its_concurrency(client, broker):
    put(client, wait=["b", "a"], jobs={"a": JOB, "b": JOB}, meta={"concurrency": "1"})
    consumer, [message] = take(broker)
    assert "marker" not in state(client)

    consumer.ack(message)

    assert state(client)["marker"] == WOKEN


@pytest.mark.parametrize("end", [ack, nack])
@pytest.mark.parametrize(
    ("key", "is_released"),
    [({"value": "a"}, True), ({"value": "a", "px": 9_000}, False), ({"value": "b"}, False)],
    ids=["its own", "its own with a TTL", "another job's"],
)
def test_a_deduplication_key_is_released_that_is(client, broker, key, is_released, end):
    put(client, wait=["a"], jobs={"a": {**JOB, "deid": "x"}})
    client.set("emq:q:de:x", **key)

    end(broker)

    assert ("de:x" not in state(client)) is is_released


@pytest.mark.parametrize("end", ["ack", "nack"])
def test_an_error_that_nobody_expects_leaves_no_job_locked_for_ever(client, broker, monkeypatch, end):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    consumer, [message] = take(broker)
    queue = broker.channel("q").queue
    with monkeypatch.context() as patch:
        patch.setattr(queue, "finish_and_fetch", Mock(side_effect=KeyError("odd")))
        with pytest.raises(KeyError):
            getattr(consumer, end)(message)

    assert not broker.in_flight.all()
    client.pexpire("emq:q:a:lock", 20_000)
    broker.locks.renew()
    assert client.pttl("emq:q:a:lock") <= 20_000
    assert [id_of(message) for message in take(broker)[1]] == ["b"]


@pytest.mark.parametrize("end", [ack, nack])
def test_the_end_of_a_job_takes_its_oldest_id_out_of_active(client, broker, end):
    """A copy, which some fault has put there, is left to the checks: they know it as finished."""
    put(client, active=["a", "other"], wait=["a"], jobs={"a": JOB}, locks=["other"])
    client.rpush("emq:q:active", "oldest", "a")

    end(broker)

    assert state(client)["active"] == ["a", "a", "other", "oldest"]
    assert not state(client).get("locks", set()) - {"other"}


@pytest.mark.parametrize("call", ["fetch", "ack", "nack", "requeue"])
def test_the_events_are_trimmed_to_what_the_meta_says(client, broker, call):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB), meta={"opts.maxLenEvents": "10"})
    consumer, [message] = take(broker)
    with client.pipeline() as pipeline:
        for number in range(500):
            pipeline.xadd("emq:q:events", {"event": "drained", "number": number})
        pipeline.execute()

    if call == "fetch":
        take(broker, 2)
    else:
        getattr(consumer, call)([message] if call == "requeue" else message)

    assert 10 <= client.xlen("emq:q:events") < 300
