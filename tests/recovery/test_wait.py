"""Where a recovered job goes when it may run again."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from ..support.queue_data import BACK, WOKEN, as_data, came_back, event, put, state


def test_recovered_jobs_join_the_back_of_the_line_the_oldest_first(client):
    """Workers take from the tail: the job that waits goes first, then the oldest of those that stalled."""
    put(
        client,
        wait=["waiting"],
        active=["newest", "middle", "oldest"],
        jobs={"waiting": {}, "newest": {}, "middle": {}, "oldest": {}},
        stalled={"newest", "middle", "oldest"},
    )

    check = StalledChecker(client).check("q")

    assert check.recovered_ids == ("oldest", "middle", "newest")
    assert state(client) == as_data(
        wait=["newest", "middle", "oldest", "waiting"],
        jobs={"waiting": {}, "newest": BACK, "middle": BACK, "oldest": BACK},
        marker=WOKEN,
        events=[*came_back("oldest"), *came_back("middle"), *came_back("newest")],
    )


@pytest.mark.parametrize("paused", ["1", "0", ""])
def test_while_the_queue_is_paused_a_job_goes_to_paused_and_wakes_nobody(client, paused):
    """Resume overwrites `wait`: a job pushed there would be lost. That `paused` is there says it, not its value."""
    put(client, paused=["b"], active=["a"], jobs={"a": {}, "b": {}}, stalled={"a"}, meta={"paused": paused})

    StalledChecker(client).check("q")

    assert state(client) == as_data(
        paused=["a", "b"], jobs={"a": BACK, "b": {}}, meta={"paused": paused}, events=came_back("a")
    )


def test_a_job_with_a_priority_gets_a_fresh_place_among_its_equals(client):
    put(
        client,
        active=["b", "a"],
        jobs={"a": {"priority": "7"}, "b": {"priority": "2"}},
        stalled={"a", "b"},
        pc="41",
        prioritized={"other": 7 * 2**32 + 41},
    )

    StalledChecker(client).check("q")

    assert state(client) == as_data(
        prioritized={"b": 2 * 2**32 + 43, "other": 7 * 2**32 + 41, "a": 7 * 2**32 + 42},
        jobs={"a": {"priority": "7", **BACK}, "b": {"priority": "2", **BACK}},
        pc="43",
        marker=WOKEN,
        events=[*came_back("a"), *came_back("b")],
    )


@pytest.mark.parametrize(
    ("counter", "score", "next_counter"),
    [
        pytest.param(None, 2**32 + 1, "1", id="absent"),
        pytest.param(str(2**32 - 1), 2**32, str(2**32), id="wraps"),
        pytest.param("no number", 2**32 + 1, "1", id="odd"),
    ],
)
def test_the_priority_counter_starts_at_one_and_wraps(client, counter, score, next_counter):
    put(client, active=["a"], jobs={"a": {"priority": "1"}}, stalled={"a"}, **({"pc": counter} if counter else {}))

    StalledChecker(client).check("q")

    after = state(client)
    assert (after["prioritized"], after["pc"]) == ({"a": score}, next_counter)


def test_the_score_of_the_lowest_priority_is_exact(client):
    """BullMQ's lowest, 2^21, gives scores of 2^53, which must not be rounded to the digits that Lua prints."""
    put(client, active=["a"], jobs={"a": {"priority": str(2**21 - 1)}}, stalled={"a"}, pc="4")

    StalledChecker(client).check("q")

    assert state(client)["prioritized"] == {"a": (2**21 - 1) * 2**32 + 5}


def test_a_job_with_a_priority_wakes_nobody_while_the_queue_is_paused(client):
    put(client, active=["a"], jobs={"a": {"priority": "1"}}, stalled={"a"}, meta={"paused": "1"})

    StalledChecker(client).check("q")

    assert state(client) == as_data(
        prioritized={"a": 2**32 + 1},
        pc="1",
        jobs={"a": {"priority": "1", **BACK}},
        meta={"paused": "1"},
        events=came_back("a"),
    )


@pytest.mark.parametrize(
    ("concurrency", "woken"), [("1", False), ("2", True), ("0", False), ("unknown", True), (None, True)]
)
def test_no_marker_when_the_concurrency_of_the_queue_is_reached(client, concurrency, woken):
    """One job is still active after the other one has come back."""
    meta = {"version": "bullmq:5.0.0", **({"concurrency": concurrency} if concurrency else {})}
    put(client, active=["b", "a"], jobs={"a": {}, "b": {}}, locks=["b"], stalled={"a"}, meta=meta)

    StalledChecker(client).check("q")

    assert state(client) == as_data(
        active=["b"],
        wait=["a"],
        jobs={"a": BACK, "b": {}},
        locks=["b"],
        meta=meta,
        events=came_back("a"),
        **({"marker": WOKEN} if woken else {}),
    )


def test_the_marker_of_delayed_jobs_is_kept(client):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"}, marker={"1": 12345})

    StalledChecker(client).check("q")

    assert state(client)["marker"] == {"0": 0, "1": 12345}


def test_a_check_that_recovers_nothing_wakes_nobody(client):
    put(client, active=["a", "b"], jobs={"a": {}, "b": {"stc": "1"}}, stalled={"b"})

    StalledChecker(client).check("q")

    assert "marker" not in state(client)


def test_stalls_and_attempts_are_counted_on(client):
    put(client, active=["a"], jobs={"a": {"stc": "3", "atm": "5", "ats": "9"}}, stalled={"a"})

    StalledChecker(client, max_stalled_count=4).check("q")

    assert state(client)["a"] == as_data(jobs={"a": {"stc": "4", "atm": "6", "ats": "9"}})["a"]


def test_a_deferred_failure_stays_with_a_job_that_comes_back(client):
    """The worker that takes it must still fail it."""
    put(client, active=["a"], jobs={"a": {"defa": "child failed"}}, stalled={"a"})

    StalledChecker(client).check("q")

    assert state(client)["a"]["defa"] == "child failed"


def test_a_job_that_ran_beside_other_suspects_comes_back_for_free_and_must_run_alone(client):
    """Nobody knows which of them killed the worker. `suspect` names the attempt that ran so."""
    put(
        client,
        active=["charged", "beside"],
        jobs={
            "beside": {"suspect": "beside:2", "ats": "2", "stc": "1"},
            "charged": {"suspect": "beside:1", "ats": "2"},
        },
        stalled={"beside", "charged"},
    )

    StalledChecker(client).check("q")

    assert state(client) == as_data(
        wait=["charged", "beside"],
        jobs={
            "beside": {"ats": "2", "stc": "1", "suspect": "alone"},
            "charged": {"suspect": "beside:1", "ats": "2", **BACK},
        },
        marker=WOKEN,
        events=[event("waiting", "beside", prev="active"), *came_back("charged")],
    )


@pytest.mark.parametrize(("limit", "kept"), [("0", 0), ("-0", 0), ("0.9", 0), ("10", 10), (None, 10_000)])
def test_events_are_trimmed_to_about_the_length_in_meta(client, limit, kept):
    put(client, **({"meta": {"opts.maxLenEvents": limit}} if limit else {}))
    with client.pipeline() as pipeline:
        for number in range(10_300):
            pipeline.xadd("emq:q:events", {"event": "drained", "number": number})
        pipeline.execute()

    StalledChecker(client).check("q")

    assert kept <= client.xlen("emq:q:events") < kept + 400


@pytest.mark.parametrize("limit", ["-1", "-0.5", "many", "inf", "", "9" * 30])
def test_an_odd_length_of_events_stops_no_check_and_drops_no_event(client, limit):
    earlier = [event("drained", str(number)) for number in range(300)]
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"}, meta={"opts.maxLenEvents": limit})
    with client.pipeline() as pipeline:
        for fields in earlier:
            pipeline.xadd("emq:q:events", fields)
        pipeline.execute()

    assert StalledChecker(client).check("q").recovered_ids == ("a",)

    assert state(client)["events"] == [*earlier, *came_back("a")]
