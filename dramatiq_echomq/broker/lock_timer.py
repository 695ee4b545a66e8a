from __future__ import annotations

import math
import threading
import time
from logging import Logger
from typing import TYPE_CHECKING

from dramatiq.logging import get_logger

if TYPE_CHECKING:
    from .lock_renewer import LockManager

#: The shortest time between two rounds, in seconds.
SHORTEST_ROUND = 0.01

#: The longest time between two rounds while renewals fail, in seconds.
LONGEST_RETRY = 1.0

#: For how many seconds the end of a round under way is waited for.
LONGEST_STOP = 5.0

#: By how many seconds the timer must be late to know that the whole process stood still.
LATE = 0.5


class LockTimer:
    """Starts the rounds of renewals, and watches over their end.

    It has two threads.  One makes the rounds: it may be held up by a silent
    network, by a name that is looked up, by anything.  The other one keeps the
    time: when locks must have ended meanwhile, their jobs are lost at that
    moment and not when the network says so.

    Parameters:
      locks(LockManager)
      hurry(Event): Set when the time of the next round may have changed.
    """

    def __init__(self, locks: LockManager, hurry: threading.Event) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.locks = locks
        self.hurry = hurry
        self._stopping = threading.Event()
        self._round = threading.Event()
        self._started = -math.inf
        self._round_since: float | None = None
        self._threads = [
            threading.Thread(target=self._keep_time, name="dramatiq-echomq-locks", daemon=True),
            threading.Thread(target=self._make_rounds, name="dramatiq-echomq-renewals", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both threads, and wait a little for a round under way."""
        self._stopping.set()
        self.hurry.set()
        self._round.set()
        for thread in self._threads:
            thread.join(LONGEST_STOP)

    def _make_rounds(self) -> None:
        while True:
            self._round.wait()
            self._round.clear()
            if self._stopping.is_set():
                return
            try:
                self.locks.renew()
            except Exception:
                self.logger.exception("A round of renewals failed. It is tried again.")
            self._round_since = None
            self.hurry.set()

    def _keep_time(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
                self._wait()
            except Exception:
                self.logger.exception("The locks were not looked after for a moment.")
                self._stopping.wait(LONGEST_RETRY)

    def _look(self) -> None:
        """Start a round when it is due, and give up what must have ended."""
        now, since = time.monotonic(), self._round_since
        if since is None and now >= self._started + self._seconds_per_round():
            self._started = self._round_since = now
            self._round.set()
        if since is not None and now - since > self.locks.timeout:
            self.locks.note_silence(since)
        elif self.locks.is_failing:
            self.locks.give_up_overdue()

    def _wait(self) -> None:
        """Wait until something is to be done, or for as long as a round may take."""
        now = time.monotonic()
        seconds = min(self.locks.timeout, max(self.locks.next_expiry() - now, 0) or self.locks.timeout)
        if self._round_since is None:
            seconds = min(seconds, self._started + self._seconds_per_round() - now)
        seconds = max(seconds, SHORTEST_ROUND)
        self.hurry.wait(seconds)
        self.hurry.clear()
        if time.monotonic() - now - seconds > LATE and self._round_since is not None:
            self._round_since = time.monotonic()  # it stood still as well, and its answer may have come meanwhile

    def _seconds_per_round(self) -> float:
        seconds = self.locks.seconds_per_round()
        return max(min(seconds, LONGEST_RETRY) if self.locks.is_failing else seconds, SHORTEST_ROUND)
