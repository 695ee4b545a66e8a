"""What the inspector does to jobs and queues, compared as data."""

from __future__ import annotations

import pytest

from dramatiq_echomq import ActionResult, QueueInspector
from dramatiq_echomq.inspection.actions import BATCH

from ..support.operator_data import put_busy_queue
from ..support.queue_data import META, WOKEN, as_data, event, put, state


@pytest.fixture
def inspector(client) -> QueueInspector:
    return QueueInspector(client)


@pytest.mark.parametrize(
    "place",
    [
        {"wait": ["a"]},
        {"paused": ["a"]},
        {"delayed": {"a": 4096}},
        {"prioritized": {"a": 1}},
        {"completed": {"a": 1}},
        {"failed": {"a": 1}},
        {"active": ["a"], "stalled": {"a"}},
        {"waiting_children": {"a": 1}},
    ],
    ids=lambda place: next(iter(place)),
)
def test_a_job_is_removed_with_all_that_is_its_own(client, inspector, place):
    put(client, jobs={"a": {"deid": "d"}}, meta=META, **{"a:logs": ["x"], "de:d": "a"}, **place)
    put(client, **{"a:failed": {"x": "y"}})

    assert inspector.remove("q", ["a"]) == ActionResult(("a",), {})

    (name,) = place.keys() - {"stalled"}
    assert state(client) == as_data(meta=META, events=[event("removed", "a", prev=name.replace("_", "-"))])


def test_a_job_that_a_worker_runs_is_not_removed(client, inspector):
    put(client, jobs={"a": {}}, active=["a"], locks=["a"], meta=META)
    before = state(client)

    result = inspector.remove("q", ["a"])

    assert result == ActionResult((), {"a": "a worker runs it: its lock is held"})
    assert state(client) == before


def test_only_its_own_deduplication_key_goes(client, inspector):
    put(client, jobs={"a": {"deid": "d"}}, wait=["a"], meta=META, **{"de:d": "b"})

    inspector.remove("q", ["a"])

    assert state(client)["de:d"] == "b"


def test_the_next_job_of_a_scheduler_and_a_parent_with_children_stay(client, inspector):
    put(client, jobs={"repeat:s:5": {"rjk": "s"}, "repeat:s:4": {"rjk": "s"}, "p": {}}, repeat={"s": 5}, meta=META)
    put(client, delayed={"repeat:s:5": 5}, completed={"repeat:s:4": 1}, waiting_children={"p": 1})
    client.sadd("emq:q:p:dependencies", "emq:q:child")

    result = inspector.remove("q", ["repeat:s:5", "repeat:s:4", "p"])

    assert result.done == ("repeat:s:4",)
    assert result.refused.keys() == {"repeat:s:5", "p"}
    assert "scheduler" in result.refused["repeat:s:5"]
    assert "other jobs of its flow" in result.refused["p"]


@pytest.mark.parametrize("others", [[], ["emq:q:other"]])
def test_a_parent_no_longer_waits_for_a_child_that_is_removed(client, inspector, others):
    parent = {"parentKey": "emq:parents:p", "parent": '{"id":"p","queueKey":"emq:parents"}'}
    put(client, jobs={"a": parent}, wait=["a"], meta=META)
    put(client, "parents", jobs={"p": {}}, waiting_children={"p": 1}, meta=META)
    client.sadd("emq:parents:p:dependencies", "emq:q:a", *others)

    assert inspector.remove("q", ["a"]).done == ("a",)

    if others:
        assert state(client, "parents")["p:dependencies"] == set(others)
        assert "wait" not in state(client, "parents")
    else:
        expected = as_data(
            jobs={"p": {}},
            wait=["p"],
            marker=WOKEN,
            meta=META,
            events=[event("waiting", "p", prev="waiting-children")],
        )
        assert state(client, "parents") == expected


def test_a_child_of_a_parent_that_cannot_be_told_stays(client, inspector):
    parent = {"parentKey": "emq:parents:p", "parent": '{"id":"p","queueKey":"emq:parents"}'}
    put(client, jobs={"a": parent}, wait=["a"], meta=META)
    put(client, "parents", wait="not a list")
    before = state(client)

    result = inspector.remove("q", ["a"])

    assert result.done == ()
    assert "emq:parents:wait is a string" in result.refused["a"]
    assert state(client) == before


@pytest.mark.parametrize(
    ("action", "job_id"),
    [*((action, name) for action in ("remove", "promote") for name in ("gone", "meta", "wait")), ("retry", "gone")],
)
def test_what_is_no_job_is_refused_and_left(client, inspector, action, job_id):
    put(client, jobs={"a": {}}, wait=["a", "gone"], meta=META, failed={"meta": 1}, delayed={"wait": 1})
    before = state(client)

    result = getattr(inspector, action)("q", [job_id])

    assert result.done == ()
    assert list(result.refused) == [job_id]
    assert state(client) == before


@pytest.mark.parametrize(
    ("meta", "fields", "expected"),
    [
        ({}, {}, {"wait": ["a", "w"], "marker": WOKEN}),
        ({"paused": "1"}, {}, {"wait": ["a", "w"]}),
        ({}, {"priority": "2"}, {"wait": ["w"], "prioritized": {"a": 2 * 2**32 + 1}, "pc": "1", "marker": WOKEN}),
        ({"concurrency": "1"}, {}, {"wait": ["a", "w"]}),
    ],
    ids=["waiting", "paused", "prioritized", "maxed"],
)
def test_a_delayed_job_is_promoted(client, inspector, meta, fields, expected):
    fields = {"delay": "5000", **fields}
    put(client, jobs={"a": fields, "w": {}}, wait=["w"], delayed={"a": 4096}, meta={**META, **meta})
    active = {"active": ["x"]} if "concurrency" in meta else {}
    put(client, **active)

    assert inspector.promote("q", ["a", "w"]) == ActionResult(("a",), {"w": "it is not delayed"})

    jobs = {"a": {**fields, "delay": "0"}, "w": {}}
    events = [event("waiting", "a", prev="delayed")]
    assert state(client) == as_data(jobs=jobs, meta={**META, **meta}, events=events, **active, **expected)


def test_failed_jobs_are_retried_oldest_first(client, inspector):
    put_busy_queue(client)

    assert inspector.failed_ids("q") == ["old", "crashed"]
    assert inspector.failed_ids("q", stalled=True) == ["crashed"]
    result = inspector.retry("q", ["old", "crashed", "waits"])

    assert result == ActionResult(("old", "crashed"), {"waits": "it is not failed"})
    after = state(client)
    assert after["wait"] == ["crashed", "old", "waits", "next"]
    assert "failed" not in after
    assert not {"stc", "failedReason", "finishedOn"} & after["crashed"].keys()


def test_many_jobs_take_bounded_calls_and_progress_is_told(client, inspector):
    names = [str(number) for number in range(2 * BATCH + 1)]
    put(client, jobs={name: {} for name in names}, delayed=dict.fromkeys(names, 1), meta=META)
    told = []

    result = inspector.promote("q", names + names[:5], progress=told.append)

    assert result.done == tuple(names)
    assert told == [BATCH, 2 * BATCH, 2 * BATCH + 1]
    assert client.llen("emq:q:wait") == len(names)


def test_a_queue_is_paused_and_resumed(client, inspector):
    put(client, jobs={"a": {}}, wait=["a"], meta=META)

    inspector.pause("q")
    assert inspector.is_paused("q")
    assert state(client)["paused"] == ["a"]
    inspector.resume("q")
    assert not inspector.is_paused("q")
    assert state(client)["wait"] == ["a"]
