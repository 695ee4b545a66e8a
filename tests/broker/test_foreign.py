"""Jobs that other programs put into a queue by hand or through BullMQ."""

from __future__ import annotations

import dramatiq
import pytest

from ..support.brokers import lines, working
from ..support.job_data import take
from ..support.queue_data import put, state


def taken(client, broker, **fields):
    put(client, wait=["1"], jobs={"1": fields})
    _, messages = take(broker)
    return messages


@pytest.mark.parametrize(
    ("data", "args", "kwargs"),
    [
        ('{"args": [1, "b"], "kwargs": {"x": 2}}', (1, "b"), {"x": 2}),
        ('{"args": [1]}', (1,), {}),
        ('{"kwargs": {"x": 2}}', (), {"x": 2}),
        ('{"args": []}', (), {}),
        ('{"args": 1}', ({"args": 1},), {}),
        ('{"kwargs": []}', ({"kwargs": []},), {}),
        ('{"args": [], "kwargs": {}, "more": 1}', ({"args": [], "kwargs": {}, "more": 1},), {}),
        ('{"path": "/tmp"}', ({"path": "/tmp"},), {}),
        ("{}", ({},), {}),
        ("[1, 2]", ([1, 2],), {}),
        ("null", (None,), {}),
        ("0", (0,), {}),
        ('"text"', ("text",), {}),
        ("true", (True,), {}),
        ('{"ü": "\\ud83d\\ude00"}', ({"ü": "😀"},), {}),
    ],
)
def test_the_data_is_what_the_actor_is_called_with(client, broker, data, args, kwargs):
    [message] = taken(client, broker, name="resize", data=data)

    assert (message.actor_name, message.args, message.kwargs) == ("resize", args, kwargs)
    assert (message.queue_name, message.message_id, message.message_timestamp) == ("q", "1", 1)
    assert message.options == {"echomq_job_id": "1"}


@pytest.mark.parametrize(
    "data",
    [
        '{"queue_name": "q"}',
        '{"queue_name": "q", "actor_name": 7, "args": [], "kwargs": {}, "options": {}, "message_id": "m", '
        '"message_timestamp": 1}',
        '{"queue_name": "q", "actor_name": "a", "args": [], "kwargs": [], "options": {}, "message_id": "m", '
        '"message_timestamp": 1}',
        '{"queue_name": "q", "actor_name": "a", "args": [], "kwargs": {}, "options": 5, "message_id": "m", '
        '"message_timestamp": 1}',
        '{"queue_name": "q", "actor_name": "a", "args": 5, "kwargs": {}, "options": {}, "message_id": "m", '
        '"message_timestamp": 1}',
        '{"queue_name": "q", "actor_name": "a", "args": null, "kwargs": {}, "options": {}, "message_id": "m", '
        '"message_timestamp": 1}',
    ],
    ids=["a part of one", "an odd actor", "odd kwargs", "odd options", "a number of args", "no args"],
)
def test_what_only_looks_like_a_message_is_an_argument(client, broker, data):
    [message] = taken(client, broker, name="resize", data=data)

    assert message.actor_name == "resize"
    assert len(message.args) == 1


@pytest.mark.parametrize("data", ["{", "", "\xff", "NaN,", '{"a": }'], ids=repr)
def test_data_that_cannot_be_decoded_fails_its_job_and_the_consumer_goes_on(client, broker, data, caplog):
    put(client, wait=["good", "bad"], jobs={"bad": {"data": data}, "good": {"data": "1"}})

    _, messages = take(broker, 2)

    assert [message.message_id for message in messages] == ["good"]
    found = state(client)
    assert list(found["failed"]) == ["bad"]
    assert "neither a Dramatiq message nor JSON" in found["bad"]["failedReason"]
    assert found["locks"] == {"good"}
    [line] = lines(caplog, "ERROR")
    assert "'bad'" in line


def test_data_that_is_no_utf_8_fails_its_job(client, broker):
    put(client, wait=["bad"])
    client.hset("emq:q:bad", mapping={"name": b"\xff\xfe", "data": b"\xff\xfe"})

    assert take(broker)[1] == []

    assert list(state(client)["failed"]) == ["bad"]


def test_nested_data_that_python_cannot_read_fails_its_job(client, broker):
    put(client, wait=["good", "bad"], jobs={"bad": {"data": "[" * 100_000}, "good": {"data": "1"}})

    _, messages = take(broker, 2)

    assert [message.message_id for message in messages] == ["good"]
    assert list(state(client)["failed"]) == ["bad"]


@pytest.mark.parametrize(
    "fields",
    [
        {"stc": "x", "ats": "1.5", "atm": "-"},
        {"opts": "{", "priority": "high"},
        {"opts": '{"lockDuration": "x", "priority": []}'},
        {"opts": '{"lockDuration": -5}'},
        {"opts": '{"lockDuration": 0}'},
        {"opts": '{"lockDuration": 0.4}'},
        {"opts": '{"lockDuration": 1e15}'},
        {"opts": "[1]", "timestamp": "soon"},
        {"opts": "null", "delay": "x"},
    ],
    ids=str,
)
def test_odd_fields_do_not_keep_a_job_from_being_run(client, broker, fields):
    put(client, wait=["good", "odd"], jobs={"odd": {"data": "1", **fields}, "good": {"data": "1"}})

    consumer, messages = take(broker, 2)
    for message in messages:
        consumer.ack(message)

    assert [message.message_id for message in messages] == ["odd", "good"]
    assert set(state(client)["completed"]) == {"odd", "good"}


@pytest.mark.parametrize("job_id", ["näme", "with:colon", "a b", "0", "wait-", b"\xff\x00"], ids=repr)
def test_custom_ids_are_taken_and_finished(client, broker, job_id):
    put(client, wait=[job_id], jobs={job_id: {"data": "1"}})

    consumer, [message] = take(broker)
    consumer.ack(message)

    assert client.zrange("emq:q:completed", 0, -1) == [job_id if isinstance(job_id, bytes) else job_id.encode()]
    assert state(client)["locks"] == set()


def test_a_job_without_a_name_or_data_fails_and_the_consumer_goes_on(client, broker):
    put(client, wait=["good", "bad"], jobs={"good": {"data": "1"}})
    client.hset("emq:q:bad", "timestamp", 1)

    _, messages = take(broker, 2)

    assert [message.message_id for message in messages] == ["good"]
    assert list(state(client)["failed"]) == ["bad"]


def test_a_job_of_a_scheduler_is_finished_and_keeps_its_fields(client, broker):
    """The next one is the scheduler's affair, whose entry stays."""
    job_id = "repeat:s:1700000000000"
    job = {"data": "1", "rjk": "s", "opts": '{"repeat": {"every": 1000}, "jobId": "x"}'}
    put(client, wait=[job_id], jobs={job_id: job}, repeat={"s": 1}, **{"repeat:s": {"name": "work"}})

    consumer, [message] = take(broker)
    consumer.ack(message)

    found = state(client)
    assert list(found["completed"]) == [job_id]
    assert (found["repeat"], found["repeat:s"], found[job_id]["rjk"]) == ({"s": 1}, {"name": "work"}, "s")


def test_an_unknown_actor_fails_its_job_with_a_clear_reason_and_the_worker_goes_on(client, broker):
    @dramatiq.actor(broker=broker, queue_name="q")
    def resize(size, x=0):
        sizes.append((size, x))

    sizes = []
    put(client, wait=["good", "bad"], jobs={"bad": {"name": "nobody"}})
    put(client, jobs={"good": {"name": "resize", "data": '{"args": [1], "kwargs": {"x": 2}}'}})

    with working(broker):
        broker.join("q", timeout=20_000)

    assert sizes == [(1, 2)]
    found = state(client)
    assert (list(found["completed"]), list(found["failed"])) == (["good"], ["bad"])
    assert (
        found["bad"]["failedReason"] == "ActorNotFound: no actor 'nobody' is declared in the worker that took the job"
    )
