"""What `explain` tells of a job."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from ..support.operator_data import put_busy_queue
from ..support.queue_data import NOW, put
from ..support.worker_data import lock, note_missing, register, registration


def test_explain_tells_each_stall_and_what_comes_next(client, command):
    held = {"pb": "host:7", "processedOn": str(NOW - 60_000), "timestamp": str(NOW - 90_000), "ats": "1"}
    put(client, active=["a"], jobs={"a": held}, stalled={"a"}, meta={"paused": "1"})
    StalledChecker(client).check("q")

    (story,) = command("explain", "q", "a", "--json").data

    assert [event["text"] for event in story["story"]] == [
        "added",
        "fetched by host:7",
        "stall 1 of at most 1: held by host:7 since 2023-11-14T22:12:20.000Z, back to paused",
    ]
    assert "dramatiq-echomq resume q" in story["next"][0]
    out = command("explain", "q", "a").out
    assert "Story, in UTC:\n  2023-11-14 22:11:50  added\n" in out
    assert "stall 1 of at most 1: held by host:7 since 2023-11-14 22:12:20, back to paused\n" in out
    assert "Now: in paused, waits for" in out


@pytest.mark.parametrize(
    ("structures", "expected"),
    [
        ({"active": ["a"]}, "The next check marks it; the one after brings it back to wait."),
        ({"active": ["a"], "stalled": {"a"}}, "The next check brings it back to wait."),
        ({"active": ["a"], "jobs": {"a": {"stc": "1"}}}, "the one after fails it, for it has stalled too often."),
        ({"active": ["a"]}, "No check was made lately. If none comes, run workers with StalledCheckerMiddleware"),
        ({"active": ["a"], "locks": ["a"]}, "Its lock is held, and ends in "),
        ({"active": ["a"], "a:lock": "token"}, "Its lock never ends"),
        ({"wait": ["a"]}, "No worker of this queue is connected"),
        ({"wait": ["a"], "meta": {"concurrency": "0"}}, "As many jobs are active as the queue allows (0)"),
        ({"delayed": {"a": (NOW + 10**12) * 4096}}, "It is due at 2055-"),
        ({"failed": {"a": 1}}, "`dramatiq-echomq retry q a`"),
        ({"completed": {"a": 1}}, "Nothing."),
        ({"waiting_children": {"a": 1}}, "It waits for other jobs of its flow"),
        ({"wait": ["a"], "delayed": {"a": 4096}}, "`dramatiq-echomq doctor q` says what can be done."),
        ({"wait": ["a"], "jobs": {"a": {"defa": "child x failed"}}}, "The worker that fetches it fails it: child x"),
        ({"wait": ["b"]}, "Nothing by itself."),
        ({"wait": ["a"], "jobs": {}}, "drops it. Nothing can be run without its data."),
    ],
)
def test_explain_says_what_comes_next(client, command, structures, expected):
    put(client, **{"jobs": {"a": {}}, **structures})

    assert expected in command("explain", "q", "a").out


@pytest.mark.usefixtures("worker_of_q")
@pytest.mark.parametrize("place", [{"wait": ["a"]}, {"prioritized": {"a": 1}}])
@pytest.mark.parametrize(
    ("stalls", "expected"),
    [
        ("0", "Next: The next worker that is free, and has no job before it, fetches it.\n"),
        (
            "1",
            "Next: It has stalled before: the next worker that is free, and has no job before it, fetches it if it "
            "runs no other such job, or if many of them wait.\n",
        ),
    ],
)
def test_explain_says_who_fetches_a_job_that_waits(client, command, place, stalls, expected):
    put(client, jobs={"a": {"stc": stalls}}, **place)

    assert expected in command("explain", "q", "a").out


@pytest.mark.parametrize(
    "place", [{"wait": ["a"]}, {"delayed": {"a": 2**55}}, {"active": ["a"], "locks": ["a"]}, {"completed": {"a": 1}}]
)
def test_a_job_that_has_failed_before_is_not_said_to_fail_again(client, command, place):
    put(client, jobs={"a": {"failedReason": "ECONNREFUSED", "ats": "1"}}, **place)  # as BullMQ leaves one that retries

    assert "fails it" not in command("explain", "q", "a").out.replace("brings it back or fails it", "")


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        (
            None,
            "Were the worker killed, its connection would close, and whoever checks would see that: the job is back "
            "within about 5 s",
        ),
        (2_000, "The connection of its worker is missing for 2.0 s. When it is so for 3 s"),
    ],
)
@pytest.mark.usefixtures("worker_of_q")
def test_explain_says_how_soon_a_crash_of_the_worker_is_seen(client, command, clock, missing, expected):
    put(client, active=["a"], jobs={"a": {"pb": "host:7"}})
    lock(client, "w1", "a")
    text, other = registration("w1"), registration("w10")
    register(client, text, other)
    if missing is not None:
        note_missing(client, text, ms=missing)

    said = command("explain", "q", "a").out

    assert expected in said
    assert "Were it frozen or its host lost, the check after the end of the lock would mark the job" in said


@pytest.mark.usefixtures("worker_of_q")
def test_explain_says_that_the_worker_of_a_job_is_not_connected(client, command):
    """Its lock is held all the same, and nobody has looked yet."""
    put(client, active=["a"], jobs={"a": {"pb": "host:8"}})
    lock(client, "w1", "a")
    register(client, registration("w1", name="host:8"))

    said = command("explain", "q", "a").out

    assert "Its worker is not connected. When that lasts for 3 s, or another crash_grace, whoever checks" in said
    assert "If nobody does, run workers with StalledCheckerMiddleware, or `dramatiq-echomq run`." in said
    assert "Were that not seen, the check after the end of the lock would mark the job" in said


def test_explain_says_of_a_worker_that_is_not_registered_that_its_lock_must_end(client, command):
    put(client, active=["a"], jobs={"a": {}})
    lock(client, "w1", "a")
    register(client, registration("w10"))

    said = command("explain", "q", "a").out

    assert "Were the worker dead, the check after the end of the lock would mark the job" in said
    assert "killed" not in said


def test_what_is_of_the_same_ms_is_told_in_the_order_in_which_it_happened(client, command, clock):
    put(
        client,
        active=["f", "b"],
        jobs={
            "f": {"stc": "1", "processedOn": str(NOW - 5), "ats": "1"},
            "b": {"processedOn": str(NOW - 5), "ats": "1"},
        },
        stalled={"f", "b"},
    )
    StalledChecker(client).check("q")
    client.hset("emq:q:b", mapping={"processedOn": NOW, "ats": "2"})

    (failed,), (back,) = (command("explain", "q", job_id, "--json").data for job_id in "fb")

    assert [event["text"].split(":")[0] for event in failed["story"]][-2:] == ["stall 2 of at most 1", "failed"]
    assert [event["text"].split(" by")[0].split(":")[0] for event in back["story"]][-2:] == [
        "stall 1 of at most 1",
        "fetched",
    ]


def test_explain_says_what_an_id_that_is_nowhere_means(client, command):
    put_busy_queue(client)

    done = command("explain", "q", "nope")

    assert done.code == 3
    assert done.err.startswith("Error: queue 'q' has no job 'nope': it was removed or never added")


def test_a_job_of_another_queue_is_said_to_be_there(client, command):
    put_busy_queue(client)
    for name in ("mails", "texts"):
        put(client, name, wait=["a"], jobs={"a": {}}, meta={"version": "x"})
    put(client, "bad", meta={"version": "echomq:2.0"})

    done = command("explain", "q", "a")

    assert (done.code, done.out) == (3, "")
    assert done.err == "Error: queue 'q' has no job 'a', but there is one in 'mails' and 'texts'\n"
