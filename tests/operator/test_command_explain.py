"""What `explain` tells of a job."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from ..support.operator_data import put_busy_queue
from ..support.queue_data import NOW, put


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
    assert "stall 1 of at most 1" in out
    assert "Now: in paused for" in out


@pytest.mark.parametrize(
    ("structures", "expected"),
    [
        ({"active": ["a"]}, "The next check marks it; the one after brings it back to wait."),
        ({"active": ["a"], "stalled": {"a"}}, "The next check brings it back to wait."),
        ({"active": ["a"], "jobs": {"a": {"stc": "1"}}}, "the one after fails it, for it has stalled too often."),
        ({"active": ["a"]}, "No check was made lately. If none comes, run workers with StalledCheckerMiddleware"),
        ({"active": ["a"], "locks": ["a"]}, "Its worker holds the lock, which would end in "),
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


def test_explain_says_what_an_id_that_is_nowhere_means(client, command):
    put_busy_queue(client)

    done = command("explain", "q", "nope")

    assert done.code == 3
    assert done.err.startswith("Error: queue 'q' has no job 'nope': it was removed or never added")
