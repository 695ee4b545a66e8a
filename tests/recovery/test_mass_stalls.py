"""Protection from mass stalls: a sweep that would recover too many of the active jobs is held for one round."""

from __future__ import annotations

import random

import pytest

from dramatiq_echomq import SettingError, StalledCheck, StalledChecker, StalledHold

from ..support.brokers import lines, recoverer_of
from ..support.queue_data import NOW, as_data, came_back, dump, is_call_of_check, put, state

pytestmark = pytest.mark.usefixtures("clock")

INTERVAL = 30_000
HOLD = "emq:q:stalled-check:hold"
THROTTLE = "emq:q:stalled-check"


def put_active(client, stalled: int, healthy: int, **structures) -> None:
    """Jobs that an earlier check has marked, the oldest ones, and some that are well."""
    bad, well = [f"bad{at}" for at in range(stalled)], [f"well{at}" for at in range(healthy)]
    put(client, active=[*well, *reversed(bad)], jobs={job_id: {} for job_id in [*bad, *well]}, locks=well, **structures)
    if bad:
        client.sadd("emq:q:stalled", *bad)


def sweeper(client, share: float | None = 0.5) -> StalledChecker:
    """A sweeper of a process of its own."""
    return StalledChecker(client, stalled_interval=INTERVAL, max_recovered_share=share)


def after_a_round(client) -> None:
    """Make a round be over for those who look at Redis: the hold began earlier, the throttle has ended."""
    client.delete(THROTTLE)
    holder, _, _ = client.get(HOLD).decode().rpartition("@")
    client.set(HOLD, f"{holder}@{NOW - INTERVAL}", keepttl=True)


def without_throttle_and_hold(client) -> dict:
    return {name: value for name, value in state(client).items() if not name.startswith("stalled-check")}


def test_too_many_are_held_for_a_round_and_then_recovered_by_whoever_sweeps_next(client):
    put_active(client, stalled=3, healthy=2)
    before = without_throttle_and_hold(client)

    assert sweeper(client).sweep("q") == StalledCheck("q", hold=StalledHold(3, 5, is_new=True))
    assert without_throttle_and_hold(client) == before
    assert INTERVAL < client.pttl(HOLD) <= 3 * INTERVAL

    after_a_round(client)
    check = sweeper(client).sweep("q")

    assert (check.recovered_ids, check.hold) == (("bad0", "bad1", "bad2"), None)
    back = {f"bad{at}": {"stc": "1", "atm": "1"} for at in range(3)}
    events = [event for at in range(3) for event in came_back(f"bad{at}")]
    assert without_throttle_and_hold(client) == as_data(
        active=["well0", "well1"],
        wait=["bad2", "bad1", "bad0"],
        jobs={**back, "well0": {}, "well1": {}},
        locks=["well0", "well1"],
        marker={"0": 0},
        events=events,
    )
    assert not client.exists(HOLD)


@pytest.mark.parametrize(
    ("share", "stalled", "healthy", "is_held"),
    [
        (0.5, 2, 2, False),
        (0.5, 3, 2, True),
        (0.1, 1, 9, False),
        (0.57, 57, 43, False),
        (0.57, 58, 42, True),
        (0.001, 1, 0, True),
        (1, 4, 0, False),
        (None, 4, 0, False),
        (0.5, 0, 3, False),
    ],
)
def test_more_than_the_share_is_held_and_no_less(client, share, stalled, healthy, is_held):
    put_active(client, stalled, healthy)

    check = sweeper(client, share).sweep("q")

    hold = StalledHold(stalled, stalled + healthy, is_new=True) if is_held else None
    assert (check.hold, check.recovered) == (hold, 0 if is_held else stalled)
    assert client.exists(HOLD) == is_held


def test_those_that_would_be_failed_count_as_well(client):
    put(client, active=["a", "b"], jobs={"a": {"stc": "1"}, "b": {}}, stalled={"a", "b"})

    assert sweeper(client).sweep("q").hold == StalledHold(2, 2, is_new=True)


def test_jobs_that_a_check_would_only_mark_or_drop_do_not_count(client):
    done = {"completed": {"done": 5}, "failed": {"over": 5}}
    jobs = {"new": {}, "renewed": {}, "done": {}, "over": {}, "bad": {}, "well": {}}
    put(client, active=list(jobs), jobs=jobs, locks=["renewed", "well"], stalled=set(jobs) - {"new", "well"}, **done)

    check = sweeper(client, 0.2).sweep("q")

    assert (check.hold, check.recovered_ids, check.marked, check.dropped) == (None, ("bad",), 1, 2)


def test_a_queue_is_not_held_for_a_worker_that_was_seen_to_be_killed(client):
    put_active(client, stalled=3, healthy=1)
    for at in range(2):
        client.set(f"emq:q:bad{at}:released", "token of the killed worker")

    assert sweeper(client).sweep("q").recovered == 3


def test_a_check_after_a_crash_is_held_and_leaves_the_end_of_the_hold_to_a_sweep(client):
    put_active(client, stalled=3, healthy=1)

    assert sweeper(client).check("q", may_be_held=True).hold == StalledHold(3, 4, is_new=True)
    assert sweeper(client).check("q", may_be_held=True).hold == StalledHold(3, 4, is_new=False)
    assert sweeper(client).sweep("q").hold == StalledHold(3, 4, is_new=False)  # the round is not over

    after_a_round(client)
    assert sweeper(client).check("q", may_be_held=True).hold == StalledHold(3, 4, is_new=False)
    assert sweeper(client).sweep("q").recovered == 3


def test_a_check_by_hand_is_not_held(client):
    put_active(client, stalled=3, healthy=0)
    assert sweeper(client).sweep("q").hold

    assert sweeper(client).check("q").recovered == 3


def test_a_hold_ends_when_the_jobs_are_well_again_and_the_next_one_begins_anew(client):
    put_active(client, stalled=3, healthy=0)
    assert sweeper(client).sweep("q").hold
    after_a_round(client)
    put(client, locks=["bad0", "bad1", "bad2"])

    assert sweeper(client).sweep("q") == StalledCheck("q")
    assert state(client) == as_data(
        active=["bad2", "bad1", "bad0"],
        jobs={"bad0": {}, "bad1": {}, "bad2": {}},
        locks=["bad0", "bad1", "bad2"],
        stalled_check=client.get(THROTTLE).decode(),
    )

    client.delete(THROTTLE, "emq:q:bad0:lock", "emq:q:bad1:lock", "emq:q:bad2:lock")
    client.sadd("emq:q:stalled", "bad0", "bad1", "bad2")
    assert sweeper(client).sweep("q").hold == StalledHold(3, 3, is_new=True)


def test_a_call_that_is_sent_twice_is_held_twice(client):
    put_active(client, stalled=3, healthy=0)
    checker, sent = sweeper(client), []
    execute = client.execute_command

    def twice(*command, **options):
        if is_call_of_check(command):
            sent.append(execute(*command, **options))
        return execute(*command, **options)

    client.execute_command = twice
    assert checker.sweep("q").hold == StalledHold(3, 3, is_new=True)
    assert sent


def test_of_a_long_list_a_sample_is_looked_at(client):
    """All ids are marked, as BullMQ's own sweeps do."""
    dice = random.Random(3)
    ids = [f"job{at}" for at in range(5_000)]
    bad = dice.sample(ids, 2_000)
    pipeline = client.pipeline(transaction=False)
    for job_id in set(ids) - set(bad):
        pipeline.set(f"emq:q:{job_id}:lock", "token")
    pipeline.rpush("emq:q:active", *ids)
    pipeline.sadd("emq:q:stalled", *ids)
    pipeline.execute()

    hold = sweeper(client, 0.3).sweep("q").hold

    assert hold.active == 5_000
    assert 1_800 < hold.would_recover < 2_200


def test_nothing_is_looked_at_more_than_without_the_setting(client):
    """Off is free: the script is called with the same keys and an empty argument."""
    put_active(client, stalled=3, healthy=0)
    client.set(HOLD, "another@1")

    assert sweeper(client, None).sweep("q").recovered == 3
    assert client.get(HOLD) == b"another@1"


def test_a_report_is_not_held(client):
    put_active(client, stalled=3, healthy=0)
    before = dump(client)
    recoverer, recorder = recoverer_of(client, report_only=True, max_recovered_share=0.1)

    recoverer.check("q")

    assert recorder.named("report") == [("q", (("bad0", "bad1", "bad2"), ()))]
    assert dump(client) == before


def test_the_middleware_and_the_log_hear_once_of_a_hold(client, caplog):
    put_active(client, stalled=3, healthy=1)
    recoverer, recorder = recoverer_of(client, max_recovered_share=0.5, stalled_interval=INTERVAL)

    assert recoverer.check("q") is None
    client.delete(THROTTLE)
    assert recoverer.check_now("q") is True
    recoverer.check("q")

    assert recorder.signals == [("hold", "q", (3, 4))]
    [line] = lines(caplog, "WARNING")
    assert line.startswith("3 jobs of queue 'q' would be recovered at once, of 4 that are active: more than")

    after_a_round(client)
    recoverer.check("q")
    assert recorder.named("recovered") == [("q", ("bad0", "bad1", "bad2"))]


@pytest.mark.parametrize("share", [0, -0.1, 1.1, True, "half", float("nan")])
def test_what_is_no_share_is_refused(client, share):
    with pytest.raises(SettingError, match=r"max_recovered_share .* a number above 0 and up to 1, say 0\.5, or None"):
        sweeper(client, share)
