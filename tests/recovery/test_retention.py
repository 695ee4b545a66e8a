"""How many failed jobs are kept: `removeOnFail` in all its forms."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import FailedJob, StalledCheck, StalledChecker

from ..support.queue_data import EARLIER, NOW, as_data, put, state, was_failed

pytestmark = pytest.mark.usefixtures("clock")

REASON = "job stalled more than allowable limit"
FORMS = ["removeOnFail", "rof", "remove_on_fail"]
#: Failed earlier, the number says how many seconds before now.


def put_poison(client, **opts):
    jobs = {"a": {"stc": "1", "opts": json.dumps(opts)}, **{job_id: {} for job_id in EARLIER}}
    put(client, active=["a"], jobs=jobs, stalled={"a"}, failed=EARLIER)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [True, 0, "0", {"count": 0}], ids=repr)
def test_a_job_that_is_not_kept_goes_with_its_keys_and_nobody_elses(client, form, value):
    put_poison(client, **{form: value})
    client.hset("emq:q:a", mapping={"data": '{"n": 1}', "pb": "w"})
    put(
        client,
        jobs={"a2": {}},
        **{
            "a:logs": ["line"],
            "a:dependencies": {"emq:q:c"},
            "a:processed": {"emq:q:d": "1"},
            "a:failed": {"emq:q:e": "why"},
            "a:unsuccessful": {"emq:q:f": 1},
            "a2:logs": ["line"],
        },
    )

    check = StalledChecker(client).check("q")

    reported = FailedJob("a", REASON, stalls=2, worker="w", name="work", data=b'{"n": 1}')
    assert check == StalledCheck("q", failed=1, failed_ids=("a",), failed_jobs=(reported,))
    assert state(client) == as_data(
        failed=EARLIER,
        jobs={"a2": {}, **{job_id: {} for job_id in EARLIER}},
        events=was_failed("a", REASON),
        **{"a2:logs": ["line"]},
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1, ["a"]),
        (2, ["f10", "a"]),
        ("2", ["f10", "a"]),
        (4, ["f30", "f20", "f10", "a"]),
        (-1, ["f30", "f20", "f10", "a"]),
        (False, ["f30", "f20", "f10", "a"]),
        (None, ["f30", "f20", "f10", "a"]),
        ("many", ["f30", "f20", "f10", "a"]),
        ([], ["f30", "f20", "f10", "a"]),
        ({}, ["f30", "f20", "f10", "a"]),
        ({"count": 2}, ["f10", "a"]),
        ({"age": 25}, ["f20", "f10", "a"]),
        ({"age": 20}, ["f10", "a"]),
        ({"age": 9, "count": 3}, ["a"]),
        ({"age": 25, "count": 2}, ["f10", "a"]),
        ({"age": "25", "count": None}, ["f20", "f10", "a"]),
        ({"age": 10**15}, ["f30", "f20", "f10", "a"]),
    ],
    ids=repr,
)
def test_the_newest_failed_jobs_are_kept(client, form, value, kept):
    put_poison(client, **{form: value})

    StalledChecker(client).check("q")

    after = state(client)
    assert list(after["failed"]) == kept
    assert {name for name in after if name in ("a", *EARLIER)} == set(kept)


def test_jobs_that_failed_earlier_are_removed_with_their_keys(client):
    put_poison(client, removeOnFail=1)
    put(client, **{"f10:logs": ["line"], "f100:logs": ["line"]})

    StalledChecker(client).check("q")

    assert [name for name in state(client) if name.endswith(":logs")] == ["f100:logs"]


def test_a_large_surplus_is_removed_step_by_step(client):
    """One job that was failed must not block Redis for the removal of a million others."""
    put_poison(client, removeOnFail=10)
    client.zadd("emq:q:failed", {f"old{number}": number for number in range(2500)})

    StalledChecker(client).check("q")
    assert client.zcard("emq:q:failed") == 2504 - 1000
    for job_id in ("b", "c"):
        put(client, active=[job_id], jobs={job_id: {"stc": "1", "opts": '{"rof": 10}'}}, stalled={job_id})
        StalledChecker(client).check("q")

    assert client.zcard("emq:q:failed") == 10
    assert client.zrange("emq:q:failed", -3, -1) == [b"a", b"b", b"c"]


def test_jobs_that_come_back_remove_nobody(client):
    put(client, active=["a"], jobs={"a": {"opts": '{"removeOnFail": true}'}}, stalled={"a"}, failed=EARLIER)

    StalledChecker(client).check("q")

    after = state(client)
    assert (after["failed"], after["wait"]) == (EARLIER, ["a"])


@pytest.mark.parametrize(
    "value",
    [0.5, {"count": 0.9}, {"age": 0}, {"age": -5}, {"age": "0"}, {"count": 5, "age": 0}, {"count": 1}],
    ids=repr,
)
def test_the_data_of_a_job_that_goes_comes_with_the_reply(client, value):
    """Else nobody could be told whose failure it was."""
    put(client, active=["a"], jobs={"a": {"opts": json.dumps({"removeOnFail": value}), "data": "[7]"}}, stalled={"a"})
    if value == {"count": 1}:  # it is the oldest by the clock of another machine
        put(client, failed={"later": NOW + 60_000})

    [failed] = StalledChecker(client, max_stalled_count=0).check("q").failed_jobs

    assert "a" not in state(client)
    assert failed.data == b"[7]"
