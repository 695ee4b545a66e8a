"""The report: what a check would do, without doing it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dramatiq_echomq import ActiveJob, StalledChecker

from ..support.operator_data import MESSAGE_ID, message_data
from ..support.queue_data import NOW, dump, put, put_mixture


def verdicts(client, **settings) -> dict[str, tuple[str, str]]:
    jobs = StalledChecker(client, **settings).inspect("q")
    return {job.job_id: (job.verdict, job.verdict_once_marked) for job in jobs}


def test_a_report_tells_what_is_known_about_each_active_job_the_oldest_first(client):
    put(
        client,
        active=["fresh", "marked", "locked"],
        jobs={"locked": {"name": "resize", "pb": "w1", "stc": "1", "atm": "2"}, "marked": {}, "fresh": {}},
        locks=["locked"],
        stalled={"marked"},
    )

    locked, marked, fresh = StalledChecker(client).inspect("q")

    assert 50_000 < locked.lock_ttl <= 60_000
    known = ActiveJob("locked", "resize", "w1", locked.lock_ttl, False, 1, 2, "healthy", "healthy")
    assert locked == replace(known, message_id="locked", args=({},), kwargs={})
    known = ActiveJob("marked", "work", "", None, True, 0, 0, "requeue", "requeue")
    assert marked == replace(known, message_id="marked", args=({},), kwargs={})
    known = ActiveJob("fresh", "work", "", None, False, 0, 0, "mark", "requeue")
    assert fresh == replace(known, message_id="fresh", args=({},), kwargs={})
    assert (locked.id, marked.id, fresh.id) == ("locked", "marked", "fresh")


def test_a_report_tells_since_when_a_job_runs_and_with_which_arguments(client, clock):
    jobs = {
        "a": {"data": message_data(args=(1,), x=2), "processedOn": str(NOW - 9_000)},
        "pickled": {"data": "\x80"},
        "large": {"data": message_data(args=("x" * 70_000,))},
    }
    put(client, active=["large", "pickled", "a"], jobs=jobs)

    job, *unread = StalledChecker(client).inspect("q")

    assert (job.started_at, job.age) == (NOW - 9_000, 9_000)
    assert (job.message_id, job.args, job.kwargs) == (MESSAGE_ID, (1,), {"x": 2})
    assert [(job.message_id, job.args, job.kwargs) for job in unread] == [
        ("pickled", None, None),
        ("", None, None),
    ]
    assert unread[0].started_at is None


def test_a_mark_of_another_runtime_on_a_healthy_job_is_shown(client):
    put(client, active=["a"], jobs={"a": {}}, locks=["a"], stalled={"a"})

    (job,) = StalledChecker(client).inspect("q")

    assert (job.marked, job.verdict) == (True, "healthy")


@pytest.mark.parametrize(
    ("fields", "later"),
    [
        ({}, "requeue"),
        ({"stc": "1"}, "fail"),
        ({"opts": '{"attempts": 1}'}, "fail"),
        ({"opts": '{"attempts": 2}'}, "requeue"),
        ({"stc": "1", "opts": '{"maxStalledCount": 2}'}, "requeue"),
        ({"stc": "4", "rjk": "nightly"}, "requeue"),
        ({"stc": "4", "ats": "1", "suspect": "beside:1"}, "requeue"),
        ({"opts": "["}, "requeue"),
    ],
    ids=str,
)
def test_a_verdict_says_what_the_checks_will_do(client, fields, later):
    put(client, active=["a"], jobs={"a": fields}, repeat={"nightly": 1})
    checker = StalledChecker(client)

    assert verdicts(client) == {"a": ("mark", later)}
    checker.check("q")
    assert verdicts(client) == {"a": (later, later)}
    check = checker.check("q")

    assert (check.recovered_ids, check.failed_ids) == ((("a",), ()) if later == "requeue" else ((), ("a",)))


def test_the_verdict_follows_the_checkers_max_stalled_count(client):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})

    assert verdicts(client, max_stalled_count=0) == {"a": ("fail", "fail")}


def test_what_should_not_be_in_active_is_told_apart(client):
    put(client, active=["twice", "text", "done", "ghost", "twice"], jobs={"twice": {}, "done": {}}, text="x")
    put(client, completed={"done": 1}, stalled={"twice", "ghost"})

    jobs = StalledChecker(client).inspect("q")

    assert [(job.job_id, job.verdict) for job in jobs] == [
        ("twice", "requeue"),
        ("ghost", "drop"),
        ("done", "drop"),
        ("text", "odd"),
        ("twice", "copy"),
    ]


def test_a_lock_that_never_ends_is_shown_as_it_is(client):
    put(client, active=["a"], jobs={"a": {}}, **{"a:lock": "token"})

    (job,) = StalledChecker(client).inspect("q")

    assert (job.verdict, job.lock_ttl) == ("healthy", -1)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_a_report_writes_nothing(client, batch_size):
    put_mixture(client)
    before = dump(client)

    assert len(StalledChecker(client, batch_size=batch_size).inspect("q")) == client.llen("emq:q:active")

    assert dump(client) == before


def test_an_empty_queue_has_an_empty_report(client):
    assert StalledChecker(client).inspect("q") == []
    assert dump(client) == {}


def test_a_report_on_a_mixture_is_what_the_check_then_does(client):
    put_mixture(client)
    checker = StalledChecker(client)

    jobs = checker.inspect("q")
    check = checker.check("q")

    def would(verdict: str) -> tuple[str, ...]:
        return tuple(job.job_id for job in jobs if job.verdict == verdict)

    assert (would("requeue"), would("fail")) == (check.recovered_ids, check.failed_ids)
    assert (len(would("drop")), len(set(would("mark")))) == (check.dropped, check.marked)


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
@pytest.mark.parametrize(("fields", "verdict"), [({}, "requeue"), ({"stc": "1"}, "fail")])
def test_a_second_id_of_a_job_is_a_copy_in_whichever_batch(client, batch_size, fields, verdict):
    put(client, active=["a", "b", "a", "c", "a"], jobs={"a": fields, "b": {}, "c": {}}, locks=["b", "c"], stalled={"a"})

    jobs = StalledChecker(client, batch_size=batch_size).inspect("q")

    assert [job.verdict for job in jobs] == [verdict, "healthy", "copy", "healthy", "copy"]
