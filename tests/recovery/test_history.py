"""Each stall leaves a line in the log of its job, where dashboards show it."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from dramatiq_echomq import StalledChecker

from ..support.queue_data import LIMIT, NOW, dump, put, state

STALLED_AT = "2023-11-14T22:13:20.000Z"  # NOW
STARTED_AT = "2023-11-14T22:12:20.000Z"
HELD = {"pb": "host:7", "processedOn": str(NOW - 60_000)}

pytestmark = pytest.mark.usefixtures("clock")


def log_after_check(client, fields, **structures) -> list[str] | None:
    put(client, active=["a"], stalled={"a"}, jobs={"a": fields}, **structures)
    StalledChecker(client).check("q")
    return state(client, history=True).get("a:logs")


@pytest.mark.parametrize(
    ("fields", "structures", "line"),
    [
        (HELD, {}, f"stall 1 of at most 1: held by host:7 since {STARTED_AT}, back to wait"),
        (HELD, {"meta": {"paused": "1"}}, f"stall 1 of at most 1: held by host:7 since {STARTED_AT}, back to paused"),
        (
            {**HELD, "priority": "3"},
            {},
            f"stall 1 of at most 1: held by host:7 since {STARTED_AT}, back to prioritized",
        ),
        ({**HELD, "stc": "1"}, {}, f"stall 2 of at most 1: held by host:7 since {STARTED_AT}, failed: {LIMIT}"),
        (
            {**HELD, "opts": '{"attempts": 1, "maxStalledCount": 4}'},
            {},
            f"stall 1 of at most 4: held by host:7 since {STARTED_AT}, failed: job stalled with no attempts left",
        ),
        ({}, {}, "stall 1 of at most 1: held by a worker without a name, back to wait"),
        ({"processedOn": "then"}, {}, "stall 1 of at most 1: held by a worker without a name, back to wait"),
    ],
    ids=["wait", "paused", "prioritized", "failed", "attempts", "nameless", "odd"],
)
def test_a_stall_says_when_it_was_who_held_the_job_and_where_it_went(client, fields, structures, line):
    assert log_after_check(client, fields, **structures) == [f"{STALLED_AT} {line}"]


def test_the_lines_of_a_job_stand_in_their_order_after_its_own(client):
    put(client, active=["a"], jobs={"a": HELD}, **{"a:logs": ["from the actor"]})
    checker = StalledChecker(client)
    for _ in range(2):
        checker.check("q")
        checker.check("q")
        client.rpoplpush("emq:q:wait", "emq:q:active")

    own, first, second = state(client, history=True)["a:logs"]

    assert own == "from the actor"
    assert ("stall 1 of" in first, "stall 2 of" in second) == (True, True)


@pytest.mark.parametrize(("opts", "kept"), [('{"kl": 2}', 2), ('{"keepLogs": 2}', 2), ('{"kl": 0}', 4), ("{}", 4)])
def test_as_many_lines_are_kept_as_the_job_says(client, opts, kept):
    log = log_after_check(client, {"opts": opts}, **{"a:logs": ["1", "2", "3"]})

    assert len(log) == kept
    assert "stall 1" in log[-1]


def test_neither_a_mark_nor_a_stall_that_is_not_charged_is_recorded(client):
    assert log_after_check(client, {"ats": "1", "stc": "1", "suspect": "beside:1"}) is None
    put(client, "other", active=["a"], jobs={"a": {}})
    StalledChecker(client).check("other")
    assert "a:logs" not in state(client, "other", history=True)


def test_a_job_that_is_removed_leaves_no_log(client):
    assert log_after_check(client, {"stc": "1", "opts": '{"removeOnFail": true}'}) is None


def test_a_log_of_another_type_is_left_as_it_is(client):
    assert log_after_check(client, HELD, **{"a:logs": "text"}) == "text"
    assert state(client)["wait"] == ["a"]


def test_a_call_that_is_sent_twice_adds_one_line(client):
    put(client, active=["a"], stalled={"a"}, jobs={"a": HELD})
    StalledChecker(SentTwice(client)).check("q")

    assert len(state(client, history=True)["a:logs"]) == 1


def test_a_report_adds_none(client):
    put(client, active=["a"], stalled={"a"}, jobs={"a": HELD})
    before = dump(client)
    StalledChecker(client).inspect("q")

    assert dump(client) == before


@pytest.mark.parametrize("day", ["1970-01-01", "2000-02-29", "2023-12-31", "2024-02-29", "2024-03-01", "2100-03-01"])
def test_the_time_is_that_of_the_calendar(client, day):
    moment = datetime.fromisoformat(f"{day}T23:59:58.007").replace(tzinfo=timezone.utc)
    started_at = round(moment.timestamp() * 1000)

    (line,) = log_after_check(client, {"processedOn": str(started_at)})

    assert f" since {day}T23:59:58.007Z, " in line


class SentTwice:
    """A client that sends each command twice, as redis-py does when a reply is lost."""

    def __init__(self, client) -> None:
        self.client = client

    def execute_command(self, *args, **options):
        self.client.execute_command(*args, **options)
        return self.client.execute_command(*args, **options)

    def unlink(self, *names):
        return self.client.unlink(*names)
