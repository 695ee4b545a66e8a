from __future__ import annotations

import math
import threading
from types import SimpleNamespace

import pytest

from dramatiq_echomq.recovery.sweeper import Sweeper

from ..support.brokers import lines


class Clock:
    """A sweeper at work without a thread, on a clock that stands still between rounds."""

    def __init__(self, monkeypatch, *queues: str, interval: int = 1000, looks: list[float] | None = None) -> None:
        self.now = 100.0
        monkeypatch.setattr("dramatiq_echomq.recovery.sweeper.time", SimpleNamespace(monotonic=lambda: self.now))
        self.queues = list(queues)
        self.checks: list[tuple[float, str]] = []
        self.waits: list[int | None] = []
        self.takes = 0.0
        self.looks: list[float] = []
        self.looks_again_after = list(looks or [])
        self.sweeper = Sweeper(
            interval=interval,
            queue_names=lambda: self.queues,
            check=self.check,
            prepare=lambda: None,
            look=None if looks is None else self.look,
        )
        self.sweeper.run_once()

    def check(self, queue_name: str) -> int | None:
        self.checks.append((round(self.now - 100, 3), queue_name))
        self.now += self.takes
        return self.waits.pop(0) if self.waits else None

    def look(self) -> float:
        self.looks.append(round(self.now - 100, 3))
        return self.looks_again_after.pop(0) if self.looks_again_after else math.inf

    def rounds(self, count: int) -> list[tuple[float, str]]:
        """Let some rounds come when the sweeper says that they are due."""
        for _ in range(count):
            self.now += self.sweeper.seconds_to_wait()
            self.sweeper.run_once()
        return self.checks


@pytest.fixture
def clock(monkeypatch):
    return lambda *queues, **parameters: Clock(monkeypatch, *queues, **parameters)


def test_a_queue_is_checked_once_per_interval(clock):
    assert clock("q").rounds(4) == [(1, "q"), (2, "q"), (3, "q"), (4, "q")]


def test_the_time_that_checks_take_does_not_add_up(clock):
    at = clock("q")
    at.takes = 0.3
    assert at.rounds(3) == [(1, "q"), (2, "q"), (3, "q")]


def test_a_throttled_queue_is_checked_again_when_its_throttle_ends(clock):
    at = clock("q")
    at.waits = [250, None]
    assert at.rounds(3) == [(1, "q"), (1.25, "q"), (2.25, "q")]


def test_a_throttle_that_lasts_long_does_not_keep_a_sweeper_away_for_long(clock):
    at = clock("q")
    at.waits = [86_400_000]
    assert at.rounds(2) == [(1, "q"), (2, "q")]


def test_checks_that_could_not_be_made_are_not_made_up_for(clock):
    at = clock("q")
    at.rounds(1)
    at.now += 3600
    del at.checks[:]
    assert at.rounds(3) == [(3601, "q"), (3602, "q"), (3603, "q")]


def test_a_queue_that_comes_later_has_an_interval_of_its_own(clock):
    at = clock("a")
    at.now += 0.6
    at.queues.append("b")
    at.sweeper.run_once()
    assert at.rounds(4) == [(1, "a"), (1.6, "b"), (2, "a"), (2.6, "b")]


def test_a_queue_that_is_gone_is_not_checked(clock):
    at = clock("a", "b")
    at.rounds(1)
    at.queues.remove("b")
    del at.checks[:]
    assert at.rounds(2) == [(2, "a"), (3, "a")]


def test_a_sweeper_without_queues_asks_again_every_interval(clock):
    at = clock()
    assert at.rounds(3) == []
    assert at.now == 103


def test_a_sweeper_that_stops_checks_no_further_queue(clock):
    at = clock("a", "b")
    at.sweeper.check = lambda queue_name: (at.check(queue_name), at.sweeper.stopping.set())[0]
    assert at.rounds(1) == [(1, "a")]


@pytest.mark.parametrize("broken", ["prepare", "queue_names", "look", "check"])
def test_no_error_that_nobody_thought_of_ends_the_thread(broken, caplog):
    checked, calls = threading.Event(), {}

    def step(name, result, done=lambda: None):
        def call(*_):
            calls[name] = calls.get(name, 0) + 1
            if name == broken and calls[name] == 1:
                raise LookupError("out of luck")
            done()
            return result

        return call

    sweeper = Sweeper(
        interval=10,
        queue_names=step("queue_names", ["q"]),
        check=step("check", None, checked.set),
        prepare=step("prepare", None),
        look=step("look", 0.01),
    )
    sweeper.start()
    try:
        assert checked.wait(20)
    finally:
        sweeper.stop(5)
    assert len(lines(caplog, "ERROR")) == 1
    assert not sweeper.is_alive()


def test_looks_are_made_when_the_last_one_said_and_disturb_no_check(clock):
    at = clock("q", looks=[0.3, 0.5, 0.7])
    assert at.rounds(5) == [(1, "q"), (2, "q")]
    assert at.looks == [0, 0.3, 0.8, 1.5]


def test_looks_end_when_they_cannot_work(clock):
    at = clock("q", looks=[])
    assert at.rounds(3) == [(1, "q"), (2, "q"), (3, "q")]
    assert at.looks == [0]


def test_a_sweeper_that_stops_looks_no_more(clock):
    at = clock("q", looks=[0.5])
    at.sweeper.stopping.set()
    at.rounds(1)
    assert at.looks == [0]
