"""The throttle: many sweepers, one sweep per interval."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dramatiq_echomq import StalledCheck, StalledChecker

from ..support.queue_data import as_data, dump, put, state

THROTTLE = "emq:q:stalled-check"


def put_dead(client):
    put(client, active=["a"], jobs={"a": {}})


def test_a_sweep_keeps_the_other_sweepers_away_for_an_interval(client):
    put_dead(client)

    assert StalledChecker(client, stalled_interval=60_000).sweep("q") == StalledCheck("q", marked=1)

    assert 55_000 < client.pttl(THROTTLE) <= 60_000


def test_a_sweep_of_an_empty_queue_keeps_them_away_as_well(client):
    assert StalledChecker(client).sweep("q") == StalledCheck("q")

    assert StalledChecker(client).sweep("q").skipped


def test_a_throttled_sweep_does_nothing_and_says_for_how_long(client):
    put_dead(client)
    StalledChecker(client, stalled_interval=60_000).sweep("q")
    before = dump(client)

    check = StalledChecker(client, stalled_interval=100).sweep("q")

    assert check == StalledCheck("q", skipped=True, throttled_for=check.throttled_for)
    assert 55_000 < check.throttled_for <= 60_000
    assert dump(client) == before


@pytest.mark.parametrize("holder", ["", "1700000000000", "another/runtime", "emq/1"])
def test_the_throttle_of_another_runtime_holds_whatever_its_value(client, holder):
    put_dead(client)
    client.set(THROTTLE, holder, px=60_000)

    assert StalledChecker(client).sweep("q").skipped

    assert state(client) == as_data(active=["a"], jobs={"a": {}}, stalled_check=holder)
    assert client.pttl(THROTTLE) > 55_000


def test_a_throttle_without_a_ttl_is_given_one(client):
    """A broken tool left it; recovery would stop for ever."""
    put_dead(client)
    put(client, stalled_check="left")

    check = StalledChecker(client, stalled_interval=20_000).sweep("q")

    assert (check.skipped, check.throttled_for) == (True, 20_000)
    assert 15_000 < client.pttl(THROTTLE) <= 20_000
    assert state(client) == as_data(active=["a"], jobs={"a": {}}, stalled_check="left")


def test_a_sweep_runs_when_the_throttle_has_ended(client):
    put_dead(client)
    StalledChecker(client).sweep("q")
    client.delete(THROTTLE)

    assert StalledChecker(client).sweep("q").recovered_ids == ("a",)


def test_a_manual_check_ignores_the_throttle_and_takes_none(client):
    put_dead(client)
    StalledChecker(client).check("q")
    assert not client.exists(THROTTLE)
    put(client, stalled_check="held")

    assert StalledChecker(client).check("q").recovered_ids == ("a",)

    assert (client.get(THROTTLE), client.pttl(THROTTLE)) == (b"held", -1)


def test_queues_are_throttled_one_by_one(client):
    checker = StalledChecker(client)

    assert [checker.sweep(queue).skipped for queue in ("q", "q2", "q", "q2")] == [False, False, True, True]


@pytest.mark.parametrize(("left", "skipped"), [(900, False), (5_000, True)])
def test_a_sweeper_may_come_a_little_early_to_its_own_throttle(client, left, skipped):
    """Else a timer that fires a hair too soon would sweep only every second interval."""
    checker = StalledChecker(client, stalled_interval=60_000)
    checker.sweep("q")
    client.pexpire(THROTTLE, left)

    assert checker.sweep("q").skipped is skipped

    assert (client.pttl(THROTTLE) > 55_000) is not skipped


def test_nobody_else_may_come_early(client):
    StalledChecker(client, stalled_interval=60_000).sweep("q")
    client.pexpire(THROTTLE, 900)

    assert StalledChecker(client, stalled_interval=60_000).sweep("q").skipped


def test_a_short_throttle_is_not_overrun_by_its_own_sweeper(client):
    """Early means a tenth of the interval at most."""
    checker = StalledChecker(client, stalled_interval=5_000)
    checker.sweep("q")
    client.pexpire(THROTTLE, 900)

    assert checker.sweep("q").skipped


def test_one_sweeper_alone_sweeps_every_interval(client):
    """With a timer that fires a little too soon each time."""
    checker = StalledChecker(client, stalled_interval=100)
    skipped = []

    for _ in range(6):
        skipped.append(checker.sweep("q").skipped)
        time.sleep(0.092)

    assert skipped == [False] * 6


def test_of_many_sweepers_one_sweeps(client):
    put_dead(client)
    checkers = [StalledChecker(client) for _ in range(8)]

    with ThreadPoolExecutor(8) as threads:
        checks = list(threads.map(lambda checker: checker.sweep("q"), checkers))

    assert sorted(check.skipped for check in checks) == [False] + [True] * 7
    assert state(client)["active"] == ["a"]
