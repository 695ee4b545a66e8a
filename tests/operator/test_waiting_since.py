"""Since when a job waits: what its hash, its log and the events tell, and no more than that."""

from __future__ import annotations

import pytest

from dramatiq_echomq import QueueInspector, StalledChecker
from dramatiq_echomq.inspection.words import waits_for
from dramatiq_echomq.protocol.scripts import load

from ..support.queue_data import META, NOW, key, put

ADDED = NOW - 90_000
RAN = NOW - 50_000
#: A job that a worker has fetched.
FETCHED = {"ats": "1", "processedOn": str(RAN)}
#: One that another program has retried by hand: it forgets when that was.
RETRIED = {"ats": "1", "atm": "1"}
AFTER = "2023-11-14T22:12:40.000Z"  # 40 s before NOW
BEFORE = "2023-11-14T22:12:20.000Z"  # 60 s before
STALL = "stall 1 of at most 1: held by host:7, back to"


def waits(client, fields, *, log=(), state="wait", **structures):
    """Since when a job waits and whether that is known, as the queue, the job and its list say."""
    places = {"a": 2**32} if state == "prioritized" else ["a"]
    put(client, jobs={"a": {"timestamp": str(ADDED), **fields}}, meta=META, **{state: places}, **structures)
    if log:
        client.rpush("emq:q:a:logs", *log)
    inspector = QueueInspector(client)
    jobs = inspector.queue("q").oldest_waiting, inspector.job("q", "a").job, inspector.jobs("q", state).jobs[0]
    return [(job.waiting_since, job.waiting_since_is_known) for job in jobs]


@pytest.mark.parametrize("state", ["wait", "paused", "prioritized"])
@pytest.mark.parametrize(
    ("fields", "log", "since", "is_known"),
    [
        ({}, (), ADDED, True),
        ({"opts": '{"delay": 9000}'}, (), ADDED + 9_000, True),
        ({"opts": '{"delay": 1e15}'}, (), ADDED, False),
        ({"opts": '{"delay": "x"}'}, (), ADDED, True),
        ({"opts": '{"delay": 1e15}'}, (f"{AFTER} promoted before it was due, to wait",), NOW - 40_000, True),
        (FETCHED, (), RAN, False),
        ({**FETCHED, "opts": '{"delay": 1000}'}, (), RAN, False),
        (FETCHED, (f"{AFTER} {STALL} wait",), NOW - 40_000, True),
        (FETCHED, (f"{AFTER} {STALL} prioritized",), NOW - 40_000, True),
        (FETCHED, (f"{BEFORE} {STALL} wait",), RAN, False),
        (FETCHED, (f"{AFTER} stall 2 of at most 1: held by host:7, failed: for this or that",), RAN, False),
        (FETCHED, (f"{AFTER} uploading to wait",), RAN, False),
        (FETCHED, (f"{AFTER} {STALL} wait", "a line of somebody else"), RAN, False),
        (RETRIED, (), ADDED, False),
        (RETRIED, (f"{AFTER} retried, back to wait",), NOW - 40_000, True),
        ({"stc": "1"}, (), ADDED, False),
    ],
)
def test_no_job_is_said_to_wait_longer_than_it_does(client, state, fields, log, since, is_known):
    assert waits(client, fields, log=log, state=state) == [(since, is_known)] * 3


@pytest.mark.parametrize(
    ("fields", "structures"),
    [
        (FETCHED, {}),
        (RETRIED, {}),
        ({"opts": '{"delay": 1e15}'}, {}),
        ({}, {"a:processed": {"emq:q:b": "null"}}),
        ({}, {"a:failed": {"emq:q:b": "x"}}),
    ],
    ids=["retried after a backoff", "retried by hand", "promoted", "parent", "parent of a failed one"],
)
def test_an_event_tells_what_the_job_does_not(client, fields, structures):
    """Lists do without: it would take too many looks."""
    for at, (event, job_id) in enumerate([("waiting", "a"), ("active", "a"), ("waiting", "a"), ("waiting", "b")]):
        client.xadd("emq:q:events", {"event": event, "jobId": job_id}, id=f"{NOW - 30_000 + at}-1")
    for number in range(150):
        client.xadd("emq:q:events", {"event": "active", "jobId": f"other-{number}"}, id=f"{NOW - 20_000 + number}-1")

    queue, job, in_list = waits(client, fields, **structures)

    assert queue == job == (NOW - 29_998, True)
    assert in_list == (RAN if fields is FETCHED else ADDED, False)


def test_an_event_of_an_earlier_wait_tells_nothing(client):
    client.xadd("emq:q:events", {"event": "waiting", "jobId": "a"}, id=f"{RAN - 1}-1")

    assert waits(client, FETCHED) == [(RAN, False)] * 3


def test_no_more_than_a_thousand_events_are_looked_at(client):
    client.xadd("emq:q:events", {"event": "waiting", "jobId": "a"}, id=f"{RAN + 1}-1")
    with client.pipeline() as pipeline:
        for number in range(1_000):
            pipeline.xadd("emq:q:events", {"event": "active", "jobId": "b"}, id=f"{RAN + 2}-{number + 1}")
        pipeline.execute()

    assert waits(client, FETCHED) == [(RAN, False)] * 3


@pytest.mark.parametrize("state", ["active", "delayed", "completed", "failed", "waiting-children"])
def test_a_job_that_no_worker_may_fetch_does_not_wait(client, state):
    places = ["a"] if state == "active" else {"a": NOW * 4096}
    put(client, jobs={"a": {}}, meta=META, **{state.replace("-", "_"): places})

    job = QueueInspector(client).job("q", "a").job

    assert (job.waiting_since, job.waiting_since_is_known) == (None, False)


@pytest.mark.parametrize(
    ("structures", "act"),
    [
        ({"failed": {"a": 1}, "jobs": {"a": RETRIED}}, "retry"),
        ({"failed": {"a": 1}, "jobs": {"a": {**RETRIED, "priority": "2"}}}, "retry"),
        ({"delayed": {"a": 2**60}, "jobs": {"a": {"opts": '{"delay": 1e15}'}}}, "promote"),
        ({"failed": {"a": 1}, "jobs": {"a": RETRIED}, "meta": {"paused": "1"}}, "retry"),
    ],
    ids=["retried", "retried with a priority", "promoted", "retried while paused"],
)
def test_what_a_person_brings_back_waits_since_then(client, structures, act):
    put(client, **structures)
    inspector = QueueInspector(client)
    before = inspector.queue("q").at

    getattr(inspector, act)("q", ["a"])

    info = inspector.queue("q")
    assert before <= info.oldest_waiting.waiting_since <= info.at
    assert info.oldest_waiting.waiting_since_is_known
    assert 0 <= info.waiting_for <= info.at - before
    (line,) = inspector.job("q", "a").log
    assert line.endswith(f" to {info.oldest_waiting.state}")


def test_as_many_lines_are_kept_as_the_job_says(client):
    put(client, failed={"a": 1}, jobs={"a": {"opts": '{"kl": 2}'}}, meta=META)
    client.rpush("emq:q:a:logs", "1", "2", "3")

    QueueInspector(client).retry("q", ["a"])

    first, second = QueueInspector(client).job("q", "a").log
    assert (first, second.endswith("retried, back to wait")) == ("3", True)


def test_a_job_that_a_check_brings_back_waits_since_then(client, clock):
    put(client, active=["a"], stalled={"a"}, jobs={"a": {**FETCHED, "timestamp": str(ADDED)}}, meta=META)

    StalledChecker(client).check("q")

    assert QueueInspector(client).queue("q").waiting_for == 0


def test_a_worker_that_gave_a_job_back_has_not_ended_its_wait(client):
    """It had not started it: to whoever waits for the job, nothing has happened."""
    fields = {**FETCHED, "timestamp": str(ADDED), "pb": "host:7"}
    put(client, active=["a"], jobs={"a": fields}, meta=META, locks=["a"])
    load("requeueJobs-1.lua")(client, [key("q", "meta")], [key("q", ""), "a", client.get("emq:q:a:lock")])

    info = QueueInspector(client).queue("q").oldest_waiting

    assert (info.waiting_since, info.waiting_since_is_known) == (ADDED, True)


def test_what_is_not_known_is_not_claimed(client, command, clock):
    put(client, wait=["a"], jobs={"a": {**FETCHED, "timestamp": str(ADDED)}}, meta=META)

    assert "at most 50 s" in command("status", "q").out
    assert "at most 50 s ago" in command("jobs", "q").out
    assert "in wait, waits for at most" in command("explain", "q", "a").out
    assert waits_for(None, NOW) == "-"


def test_the_story_has_what_a_person_did(client, command, clock):
    jobs = {"f": {**RETRIED, "timestamp": str(ADDED)}, "d": {"timestamp": str(ADDED), "opts": '{"delay": 60000}'}}
    put(client, failed={"f": 1}, delayed={"d": 2**60}, jobs=jobs, meta=META)
    QueueInspector(client).retry("q", ["f"])
    QueueInspector(client).promote("q", ["d"])

    (retried,), (promoted,) = (command("explain", "q", job_id, "--json").data for job_id in "fd")

    assert [event["text"] for event in retried["story"]] == ["added", "retried, back to wait"]
    assert [event["text"] for event in promoted["story"]] == ["added", "promoted before it was due, to wait"]
