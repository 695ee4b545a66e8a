"""The report: what a check would do, without doing it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, replace

import pytest

from dramatiq_echomq import ActiveJob, StalledChecker

from ..support.operator_data import MESSAGE_ID, message_data
from ..support.queue_data import NOW, dump, key, put, put_mixture


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


def test_a_record_says_what_the_job_held_when_it_was_looked_at(client):
    put(client, active=["gone", "changed"], jobs={name: {"data": message_data()} for name in ("gone", "changed")})
    known = StalledChecker(client).inspect("q")
    found = StalledChecker(client).inspect("q")

    assert [job.args for job in known] == [(1,), (1,)]
    client.delete("emq:q:gone")
    client.hset("emq:q:changed", "data", message_data("other", args=(2,)))

    assert [(job.message_id, job.args, job.kwargs) for job in found] == [(MESSAGE_ID, (1,), {})] * 2
    assert found == known


@pytest.mark.parametrize("data", [message_data(x=[]), '{"a": 1}', "[" * 30_000, "\x80", "", "x" * 70_000])
def test_a_record_whose_data_nobody_has_read_is_like_one_that_was_made_with_it(client, data):
    put(client, active=["a"], jobs={"a": {"data": data}})

    def look() -> ActiveJob:
        (job,) = StalledChecker(client).inspect("q")
        return job

    made = ActiveJob(**asdict(look()))

    assert look() == made
    assert repr(look()) == repr(made)
    for treat in (copy.copy, copy.deepcopy, lambda job: pickle.loads(pickle.dumps(job)), replace):
        assert treat(look()) == made
    job = look()
    assert job.kwargs is job.kwargs
    assert hasattr(job, "missing") is False


def test_texts_of_any_bytes_and_counters_of_any_size_are_told(client):
    ids = [b"\xff\x00 \n", b"plain", "schön".encode(), b"\xed\xb3\xbf"]
    fields = {"name": b"\xff\n\x00", "pb": "wörker 1", "stc": 2**60, "atm": -(2**60), "processedOn": NOW + 5}
    for job_id in ids:
        client.hset(key("q", job_id), mapping={**fields, "data": b"\xff"})
    client.rpush("emq:q:active", *reversed(ids))
    client.set(key("q", b"plain:lock"), "token", px=2**61)
    client.set(key("q", "schön:lock"), "token", pxat=2**52)

    jobs = StalledChecker(client).inspect("q")

    assert [job.job_id.encode("utf-8", "surrogateescape") for job in jobs] == ids
    assert {(job.name, job.worker, job.stalls, job.attempts, job.started_at) for job in jobs} == {
        ("\\xff\n\x00", "wörker 1", 2**53, -(2**53), NOW + 5)
    }
    assert {(job.message_id == job.job_id, job.args, job.kwargs) for job in jobs} == {(True, None, None)}
    assert (jobs[0].lock_ttl, jobs[1].lock_ttl) == (None, 2**53)
    assert 2**51 < jobs[2].lock_ttl < 2**52
    assert [job.job_id for job in StalledChecker(client).verdicts("q")] == [jobs[0].job_id, jobs[3].job_id]


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_verdicts_alone_are_those_of_the_jobs_without_a_lock(client, batch_size):
    put_mixture(client)
    client.rpush("emq:q:active", "meta", "text")
    client.set("emq:q:text", "x")
    before = dump(client)
    checker = StalledChecker(client, batch_size=batch_size)

    jobs = [job for job in checker.inspect("q") if job.verdict != "healthy"]

    assert checker.verdicts("q") == [(job.job_id, job.verdict, job.verdict_once_marked) for job in jobs]
    assert {job.verdict for job in jobs} == {"mark", "requeue", "fail", "drop", "copy", "odd"}
    assert dump(client) == before


def test_one_job_is_told_of_alone_as_it_is_among_all(client):
    put_mixture(client)
    before = dump(client)
    checker = StalledChecker(client)
    first = {job.job_id: replace(job, lock_ttl=None) for job in reversed(checker.inspect("q"))}

    for job_id, job in first.items():
        found = checker.inspect_job("q", job_id)
        assert replace(found, lock_ttl=None, age=job.age) == job

    assert checker.inspect_job("q", "nowhere") is None
    assert checker.inspect_job("q", "gone") is None
    assert checker.inspect_job("nothing", "a") is None
    assert dump(client) == before
