from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from logging import Logger

from dramatiq.logging import get_logger


class Sweeper(threading.Thread):
    """The thread that checks each queue once per interval.

    Parameters:
      interval(int): The ms between two checks of a queue.  The first one is
        an interval after the queue was seen first.
      queue_names(Callable): Returns the queues there are; asked before each round.
      check(Callable): Checks one queue.  Returns the ms after which to come
        back if that is sooner than an interval, or None.  It must not raise.
      prepare(Callable): Called once on the thread before anything else.
      look(Callable): Looks for crashed workers.  Returns the seconds until
        it is to be called again.  It must not raise.
    """

    def __init__(
        self,
        *,
        interval: int,
        queue_names: Callable[[], Iterable[str]],
        check: Callable[[str], int | None],
        prepare: Callable[[], None],
        look: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(name="dramatiq-echomq-sweeper", daemon=True)
        self.logger: Logger = get_logger(__name__, type(self))
        self.interval = interval
        self.queue_names = queue_names
        self.check = check
        self.prepare = prepare
        self.look = look
        self.stopping: threading.Event = threading.Event()
        self._due: dict[str, float] = {}
        self._look_due = 0.0 if look else math.inf

    def run(self) -> None:
        self._run_step(self.prepare)
        self._run_step(self._update_queues)
        while not self.stopping.wait(self.seconds_to_wait()):
            self._run_step(self.run_once)

    def run_once(self) -> None:
        """Look for crashed workers if that is due, and check the queues that are."""
        if self.look and self._look_due <= time.monotonic() and not self.stopping.is_set():
            self._look_due = self.look() + time.monotonic()
        self._update_queues()
        for queue_name, due in list(self._due.items()):
            if due <= time.monotonic() and not self.stopping.is_set():
                wait = self.check(queue_name)
                self._due[queue_name] = self._next_due(due, wait)

    def stop(self, timeout: float) -> None:
        """End the thread.

        Parameters:
          timeout(float): How many seconds to wait for a check under way.
        """
        self.stopping.set()
        self.join(timeout)

    def _run_step(self, step: Callable[[], None]) -> None:
        """Let no error that nobody thought of end the recovery of jobs."""
        try:
            step()
        except Exception:
            self.logger.exception("A step of the recovery of stalled jobs failed. It goes on after an interval.")
            self.stopping.wait(min(self.interval / 1000, threading.TIMEOUT_MAX))

    def _next_due(self, due: float, wait: int | None) -> float:
        now, interval = time.monotonic(), self.interval / 1000
        if wait:
            return now + min(wait / 1000, interval)
        # Checks that a long one or a sleeping machine has kept from being made are not made up for.
        return due + interval if due + interval > now else now + interval

    def _update_queues(self) -> None:
        first_due = time.monotonic() + self.interval / 1000
        self._due = {queue_name: self._due.get(queue_name, first_due) for queue_name in self.queue_names()}

    def seconds_to_wait(self) -> float:
        now = time.monotonic()
        next_due = min(self._due.values(), default=now + self.interval / 1000)
        until_look = self._look_due - now
        return max(0.0, min(next_due - now, self.interval / 1000, until_look, threading.TIMEOUT_MAX))
