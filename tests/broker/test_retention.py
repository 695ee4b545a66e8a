"""Which finished jobs are kept."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import EchoMQBroker

from ..support.job_data import JOB, ack, nack
from ..support.queue_data import NOW, put, state

pytestmark = pytest.mark.usefixtures("clock")

OLD = {"new": NOW - 1_000, "old": NOW - 60_000, "older": NOW - 3_600_000}
ENDS = pytest.mark.parametrize(
    ("end", "kept_in", "setting", "option"),
    [
        (ack, "completed", "keep_completed", "removeOnComplete"),
        (nack, "failed", "keep_failed", "removeOnFail"),
    ],
    ids=["completed", "failed"],
)


def left(client, end, kept_in: str, opts: dict | None = None, **settings) -> set[str]:
    """The finished jobs that are left of three older ones and one that ends now. Their hashes and the
    other keys of those that went are gone with them.
    """
    job = {**JOB, "opts": json.dumps(opts or {})}
    put(client, wait=["a"], jobs={"a": job, **dict.fromkeys(OLD, JOB)}, **{kept_in: OLD})
    put(client, **{f"{job_id}:logs": ["a line"] for job_id in ["a", *OLD]})

    end(EchoMQBroker(client=client, middleware=[], **settings))

    found = state(client)
    left = set(found.get(kept_in, {}))
    assert {job_id for job_id in ["a", *OLD] if job_id in found} == left
    assert {job_id for job_id in ["a", *OLD] if f"{job_id}:logs" in found} == left
    return left


@ENDS
@pytest.mark.parametrize(
    ("count", "expected"), [(0, {"new", "old", "older"}), (1, {"a"}), (3, {"a", "new", "old"}), (9, {"a", *OLD})]
)
def test_the_setting_says_how_many(client, end, kept_in, setting, option, count, expected):
    assert left(client, end, kept_in, **{setting: count}) == expected


@ENDS
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (True, {"new", "old", "older"}),
        (0, {"new", "old", "older"}),
        (2, {"a", "new"}),
        ({"count": 1}, {"a"}),
        ({"age": 30}, {"a", "new"}),
        ({"age": 120, "count": 2}, {"a", "new"}),
        (False, {"a", "new"}),
        (None, {"a", "new"}),
        ("odd", {"a", "new"}),
    ],
    ids=lambda value: None if isinstance(value, set) else repr(value),
)
def test_the_jobs_own_opts_go_first(client, end, kept_in, setting, option, own, expected):
    assert left(client, end, kept_in, {option: own}, **{setting: 2}) == expected


@pytest.mark.parametrize("name", ["rof", "remove_on_fail"])
def test_the_other_names_of_remove_on_fail_count(client, name):
    assert left(client, nack, "failed", {name: 1}) == {"a"}


def test_failed_jobs_are_kept_for_as_long_as_the_dead_message_ttl(client):
    assert left(client, nack, "failed", dead_message_ttl=120_000) == {"a", "new", "old"}


def test_failed_jobs_are_kept_for_a_week_by_default(client):
    week = 7 * 86_400_000
    put(client, wait=["a"], jobs={"a": JOB, "recent": JOB, "old": JOB})
    put(client, failed={"recent": NOW - week + 1_000, "old": NOW - week - 1})

    nack(EchoMQBroker(client=client, middleware=[]))

    assert set(state(client)["failed"]) == {"a", "recent"}


def test_completed_jobs_are_kept_up_to_a_thousand_by_default_whatever_their_age(client):
    put(client, wait=["a"], jobs={"a": JOB}, completed={str(at): at for at in range(1_000)})

    ack(EchoMQBroker(client=client, middleware=[]))

    found = state(client)["completed"]
    assert len(found) == 1_000
    assert "0" not in found
    assert found["a"] == NOW


@ENDS
def test_a_thousand_go_at_a_time(client, end, kept_in, setting, option):
    put(client, wait=["a"], jobs={"a": JOB}, **{kept_in: {str(at): at for at in range(2_500)}})

    end(EchoMQBroker(client=client, middleware=[], **{setting: 10}, dead_message_ttl=10 * NOW))

    assert len(state(client)[kept_in]) == 1_501


@ENDS
def test_a_job_that_is_not_kept_is_not_among_those_that_finished_before_either(client, end, kept_in, setting, option):
    """It was added again with the id of one that had finished, whose hash was gone."""
    put(client, wait=["a"], jobs={"a": {**JOB, "opts": json.dumps({option: True})}}, **{kept_in: {"a": 5}})

    end(EchoMQBroker(client=client, middleware=[]))

    assert not {"a", kept_in, "active"} & state(client).keys()
