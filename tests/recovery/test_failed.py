"""Which jobs a check fails, and what it writes about them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dramatiq_echomq import FailedJob, StalledCheck, StalledChecker
from dramatiq_echomq.protocol.records import STALLED

from ..support.queue_data import LIMIT, NOW, WOKEN, as_data, came_back, put, state, was_failed

pytestmark = pytest.mark.usefixtures("clock")

NO_ATTEMPTS = "job stalled with no attempts left"


def opts(**values) -> str:
    return json.dumps(values)


def fails(client, fields, **settings) -> str | None:
    """Why a marked job with these fields is failed, or None when it comes back."""
    put(client, active=["a"], jobs={"a": fields}, stalled={"a"})
    check = StalledChecker(client, **settings).check("q")
    assert check.recovered + check.failed == 1
    return check.failed_jobs[0].reason if check.failed else None


def test_a_job_that_stalled_too_often_is_failed_and_says_why(client):
    fields = {"stc": "1", "atm": "2", "pb": "worker-7", "defa": "child failed", "processedOn": "3"}
    put(client, active=["a"], jobs={"a": fields}, stalled={"a"})

    check = StalledChecker(client).check("q")

    reported = FailedJob("a", LIMIT, stalls=2, worker="worker-7", name="work", data=b"")
    assert check == StalledCheck("q", failed=1, failed_ids=("a",), failed_jobs=(reported,))
    left = {"stc": "2", "atm": "3", "pb": "worker-7", "processedOn": "3"}
    assert state(client) == as_data(
        failed={"a": NOW},
        jobs={"a": {**left, "failedReason": LIMIT, "finishedOn": str(NOW)}},
        events=was_failed("a", LIMIT),
    )


def test_every_reason_to_fail_is_one_by_which_brokers_and_inspectors_know_a_stalled_job():
    verdict = (Path(__file__).parents[2] / "lua" / "src" / "includes" / "stalled" / "verdict.lua").read_text("utf-8")
    reasons = re.findall(r'^local [A-Z_]+ = "(.+)"$', verdict, re.MULTILINE)

    assert set(reasons) >= {LIMIT, NO_ATTEMPTS}
    assert all(reason.startswith(STALLED) for reason in reasons)


def test_a_failed_job_of_a_paused_queue_is_failed_all_the_same(client):
    put(client, active=["a"], jobs={"a": {"stc": "1"}}, stalled={"a"}, meta={"paused": "1"})

    StalledChecker(client).check("q")

    assert state(client)["failed"] == {"a": NOW}


@pytest.mark.parametrize(
    ("max_stalled_count", "stalls", "reason"),
    [
        (0, None, LIMIT),
        (1, None, None),
        (1, "1", LIMIT),
        (3, "2", None),
        (3, "3", LIMIT),
        (3, "7", LIMIT),
    ],
)
def test_a_job_may_stall_max_stalled_count_times(client, max_stalled_count, stalls, reason):
    fields = {} if stalls is None else {"stc": stalls}

    assert fails(client, fields, max_stalled_count=max_stalled_count) == reason


@pytest.mark.parametrize(
    ("opts_of_job", "stalls", "reason"),
    [
        ({"maxStalledCount": 2}, "1", None),
        ({"maxStalledCount": 2}, "2", LIMIT),
        ({"maxStalledCount": 0}, "0", LIMIT),
        ({"maxStalledCount": None}, "1", LIMIT),
        ({"maxStalledCount": [9]}, "1", LIMIT),
    ],
)
def test_the_max_stalled_count_of_a_jobs_own_opts_goes_first(client, opts_of_job, stalls, reason):
    assert fails(client, {"stc": stalls, "opts": opts(**opts_of_job)}) == reason


@pytest.mark.parametrize("name", ["attempts", "at"])
@pytest.mark.parametrize(
    ("attempts", "made", "reason"),
    [
        (1, None, NO_ATTEMPTS),
        (2, None, None),
        (2, "1", NO_ATTEMPTS),
        (2, "5", NO_ATTEMPTS),
        ("2", "1", NO_ATTEMPTS),
        (0, "9", None),
        (-1, "9", None),
        (None, "9", None),
        ({"of": 1}, "9", None),
    ],
)
def test_a_stall_is_an_attempt_and_attempts_are_a_ceiling(client, name, attempts, made, reason):
    fields = {} if made is None else {"atm": made}

    assert fails(client, {**fields, "opts": opts(**{name: attempts})}) == reason


def test_a_job_without_declared_attempts_has_no_ceiling(client):
    assert fails(client, {"atm": "1000"}) is None


def test_the_stall_limit_is_named_when_both_limits_are_reached(client):
    assert fails(client, {"stc": "1", "opts": opts(attempts=1)}) == LIMIT


SCHEDULERS = [
    pytest.param({"repeat": {"nightly": 5}}, id="entry"),
    pytest.param({"repeat:nightly": {"name": "work"}}, id="hash"),
]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_of_a_live_scheduler_is_never_failed_by_its_stalls(client, scheduler):
    put(client, active=["a"], jobs={"a": {"stc": "8", "rjk": "nightly"}}, stalled={"a"}, **scheduler)

    StalledChecker(client).check("q")

    assert state(client) == as_data(
        wait=["a"],
        jobs={"a": {"stc": "9", "atm": "1", "rjk": "nightly"}},
        marker=WOKEN,
        events=came_back("a"),
        **scheduler,
    )


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_attempts_of_a_schedulers_job_are_a_ceiling(client, scheduler):
    put(client, **scheduler)

    assert fails(client, {"stc": "8", "rjk": "nightly", "opts": opts(attempts=1)}) == NO_ATTEMPTS


@pytest.mark.parametrize("scheduler", [{}, {"repeat": {"hourly": 5}}, {"repeat:hourly": {"name": "work"}}])
def test_a_job_whose_scheduler_is_gone_is_failed(client, scheduler):
    put(client, **scheduler)

    assert fails(client, {"stc": "1", "rjk": "nightly"}) == LIMIT


@pytest.mark.parametrize(
    ("holder", "ttl", "released"),
    [("a", None, True), ("a", 60_000, False), ("another", None, False), (None, None, True)],
)
def test_the_deduplication_key_is_released_if_it_is_the_jobs_and_has_no_ttl(client, holder, ttl, released):
    put(client, active=["a"], jobs={"a": {"stc": "1", "deid": "x:1"}}, stalled={"a"})
    if holder:
        client.set("emq:q:de:x:1", holder, px=ttl)

    StalledChecker(client).check("q")

    after = state(client)
    assert after["failed"] == {"a": NOW}
    assert after.get("de:x:1") == (None if released else holder)


def test_a_deduplication_key_of_another_type_stops_nothing(client):
    put(client, active=["a"], jobs={"a": {"stc": "1", "deid": "x"}}, stalled={"a"}, **{"de:x": {"owner": "a"}})

    StalledChecker(client).check("q")

    after = state(client)
    assert (after["failed"], after["de:x"]) == ({"a": NOW}, {"owner": "a"})


def test_a_job_that_comes_back_keeps_its_deduplication_key(client):
    put(client, active=["a"], jobs={"a": {"deid": "x"}}, stalled={"a"}, **{"de:x": "a"})

    StalledChecker(client).check("q")

    assert state(client)["de:x"] == "a"


@pytest.mark.parametrize("job", [{"a": {"deid": "x"}}, {}], ids=["failed", "gone"])
def test_a_job_that_waits_for_the_end_of_another_and_cannot_be_added_stays_stored_and_is_told_of(client, job):
    waiting = {"name": "work", "data": "[2]"}
    put(client, active=["a"], jobs=job, stalled={"a"}, id=["no counter"], **{"de:x": "a", "dn:x": waiting})
    told = {"event": "deduplicated", "jobId": "a", "deduplicationId": "x", "deduplicatedJobId": "b"}
    client.xadd("emq:q:events", told)

    check = StalledChecker(client, max_stalled_count=0).check("q")

    oddity = "the job that waits for its end was not added: emq:q:id is a list and should be a string"
    assert (check.failed_ids, check.oddities) == (tuple(job), (("a", oddity),))
    assert state(client)["dn:x"] == waiting
