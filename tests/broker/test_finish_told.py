"""What others are told of the end of a job: events, stack traces, BullMQ's metrics."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import EchoMQBroker, StalledChecker

from ..support.job_data import JOB, ack, nack, raised
from ..support.queue_data import NOW, event, put, state

pytestmark = pytest.mark.usefixtures("clock")


def events(client, name: str) -> list[dict]:
    return [said for said in state(client)["events"] if said["event"] == name]


@pytest.mark.parametrize(
    "earlier", [{}, {"atm": "4"}, {"opts": '{"attempts": 9}'}], ids=["first", "fifth", "attempts left"]
)
def test_a_message_that_failed_for_good_has_no_retries_left(client, broker, earlier):
    put(client, wait=["a"], jobs={"a": {**JOB, **earlier}})

    nack(broker)

    made = "5" if "atm" in earlier else "1"
    assert events(client, "retries-exhausted") == [event("retries-exhausted", "a", attemptsMade=made)]


@pytest.fixture
def small_events(client):
    return EchoMQBroker(client=client, middleware=[], max_event_bytes=100)


@pytest.mark.parametrize(("size", "is_told"), [(98, True), (99, False), (1_000_000, False)])
def test_a_result_that_is_too_large_for_an_event_is_in_the_job_alone(client, small_events, size, is_told):
    put(client, wait=["a"], jobs={"a": JOB})

    ack(small_events, "x" * size)

    value = json.dumps("x" * size)
    told = {"returnvalue": value} if is_told else {"returnvalue": "null", "returnvalueBytes": str(len(value))}
    assert events(client, "completed") == [event("completed", "a", **told, prev="active")]
    assert state(client)["a"]["returnvalue"] == value


@pytest.mark.parametrize("character", ["x", "ü", "€", "🦀"])
@pytest.mark.parametrize("length", [80, 300])
def test_an_event_carries_as_much_of_a_reason_as_it_may(client, small_events, character, length):
    put(client, wait=["a"], jobs={"a": JOB})

    nack(small_events, raised(character * length))

    reason = f"Boom: {character * length}"
    [said] = events(client, "failed")
    assert said["failedReason"] == reason.encode()[:100].decode(errors="ignore")
    assert state(client)["a"]["failedReason"] == reason


@pytest.mark.parametrize(
    ("limit", "earlier", "kept"),
    [
        (None, None, ["new"]),
        (None, '["one", "two"]', ["one", "two", "new"]),
        (0, None, []),
        (0, '["one"]', []),
        (1, '["one", "two"]', ["new"]),
        (2, '["one", "two"]', ["two", "new"]),
        (9, '["one", "two"]', ["one", "two", "new"]),
        (2.5, '["one", "two"]', ["two", "new"]),
        ("odd", '["one"]', ["one", "new"]),
        (-1, '["one"]', ["one", "new"]),
        (None, "no JSON", ["new"]),
        (None, '{"a": 1}', ["new"]),
        (None, "[]", ["new"]),
        (None, '["one", 1e999]', ["new"]),
        (None, "[NaN]", ["new"]),
        (10**6, json.dumps(["one"] * 9_000), ["one"] * 999 + ["new"]),
        (10**300, '["one"]', ["one", "new"]),
    ],
)
def test_as_many_stack_traces_are_kept_as_the_opts_say(client, broker, limit, earlier, kept):
    fields = {"opts": json.dumps({"stackTraceLimit": limit}), **({"stacktrace": earlier} if earlier else {})}
    put(client, wait=["a"], jobs={"a": {**JOB, **fields}})

    nack(broker)

    found = json.loads(state(client)["a"]["stacktrace"])
    assert ["new" if trace.startswith("Traceback") else trace for trace in found] == kept


def test_metrics_are_counted_only_where_that_is_set(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})

    ack(broker)

    assert not [name for name in state(client) if name.startswith("metrics")]


@pytest.fixture
def counting_broker(client):
    return EchoMQBroker(client=client, middleware=[], metrics_max_data_points=5)


ENDS = pytest.mark.parametrize(("end", "target"), [(ack, "completed"), (nack, "failed")])


@ENDS
def test_the_first_job_begins_the_metrics(client, counting_broker, end, target):
    put(client, wait=["a"], jobs={"a": JOB})

    end(counting_broker)

    found = {name: value for name, value in state(client).items() if name.startswith("metrics")}
    assert found == {f"metrics:{target}": {"count": "1", "prevTS": str(NOW), "prevCount": "0"}}


def metrics(count: int, minutes_ago: int, counted: int) -> dict[str, str]:
    return {"count": str(count), "prevTS": str(NOW - minutes_ago * 60_000), "prevCount": str(counted)}


@ENDS
@pytest.mark.parametrize(
    ("minutes", "points"),
    [
        (0, ["8", "9"]),
        (1, ["3", "8", "9"]),
        (2, ["0", "3", "8", "9"]),
        (4, ["0", "0", "0", "3", "8"]),
        (90_000, ["0", "0", "0", "0", "3"]),
    ],
)
def test_metrics_have_a_point_for_each_minute(client, counting_broker, end, target, minutes, points):
    """As BullMQ's own: the job of a new minute makes the point of the one before."""
    earlier = {f"metrics:{target}": metrics(20, minutes, 17), f"metrics:{target}:data": ["8", "9"]}
    put(client, wait=["a"], jobs={"a": JOB}, **earlier)

    end(counting_broker)

    found = state(client)
    expected = metrics(21, 0, 20) if minutes else metrics(21, 0, 17)
    assert (found[f"metrics:{target}"], found[f"metrics:{target}:data"]) == (expected, points)


def test_a_year_of_points_is_kept_when_asked_for(client):
    put(client, wait=["a"], jobs={"a": JOB}, **{"metrics:completed": metrics(1, 500_000, 0)})

    ack(EchoMQBroker(client=client, middleware=[], metrics_max_data_points=600_000))

    assert client.llen("emq:q:metrics:completed:data") == 500_000


@pytest.mark.parametrize(
    "damage",
    [
        {"metrics:completed": "text"},
        {"metrics:completed": metrics(1, 9, 0), "metrics:completed:data": "text"},
        {"metrics:completed": {"count": "odd"}},
        {"metrics:completed": {"count": "1", "prevTS": "odd", "prevCount": "odd"}},
    ],
    ids=["counts", "points", "a count", "times"],
)
def test_odd_metrics_keep_no_job_from_finishing(client, counting_broker, damage):
    put(client, wait=["a"], jobs={"a": JOB}, **damage)

    ack(counting_broker)

    assert state(client)["completed"] == {"a": NOW}


def test_a_job_that_stalled_out_counts_where_workers_count(client, counting_broker):
    put(client, active=["b", "c"], jobs={"b": {}, "c": {}}, stalled={"b", "c"})
    put(client, **{"metrics:failed": metrics(1, 1, 0)})

    StalledChecker(client, max_stalled_count=0).check("q")
    put(client, wait=["a"], jobs={"a": JOB})
    nack(counting_broker)

    found = state(client)
    assert (found["metrics:failed"]["count"], found["metrics:failed:data"]) == ("4", ["3"])
