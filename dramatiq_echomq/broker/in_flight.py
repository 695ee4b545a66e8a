from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dramatiq.middleware import Interrupt

from .jobs import JobMessage
from .threads import Runner, absorb


class LockLost(Interrupt):
    """Raised in an actor whose job is no longer its own: the lock ended,
    because the process was frozen or could not reach Redis, and the job may
    run on another worker by now.
    """


@dataclasses.dataclass(eq=False)
class Holding:
    """A job that this process holds."""

    message: JobMessage
    renewed_at: float
    runner: Runner | None = None
    is_finishing: bool = False
    is_doubtful: bool = False

    @property
    def is_overdue(self) -> bool:
        """Whether its lock must have ended by this process's own clock."""
        return time.monotonic() - self.renewed_at > self.message.job.lock_duration / 1000

    @property
    def is_orphaned(self) -> bool:
        """Whether the thread that ran it died, as interrupts can do to threads, even while they finish a job."""
        return self.runner is not None and not self.runner.is_alive()


class Holdings:
    """The jobs that this process holds: those that wait in its memory, and
    those that run.  Any thread may ask and tell.  Threads are woken only for
    what they wait for: each needless wake-up costs more than all the rest.

    Parameters:
      usual_duration(int): How many ms a lock lasts where a job does not say so.

    Attributes:
      hurry(Event): Set when a job was taken whose lock is shorter than usual.
      threads(int): How many threads the worker has to run jobs on.
    """

    def __init__(self, usual_duration: int) -> None:
        self.usual_duration = usual_duration
        self.hurry = threading.Event()
        self.threads = 0
        self._by_token: dict[bytes, Holding] = {}
        self._counts: Counter[str] = Counter()
        self._wanted_counts: dict[str, int] = {}
        self._suspect: bytes | None = None
        self._threads_set_aside = 0
        self._suspects_set_aside = 0
        # Entered by itself: an interrupt that comes while a Condition is entered leaves it locked for ever.
        self._mutex = threading.RLock()
        self._changed = threading.Condition(self._mutex)

    def hold(self, messages: Iterable[JobMessage], taken_at: float) -> None:
        """Note jobs that were taken.

        Parameters:
          messages(Iterable[JobMessage])
          taken_at(float): The monotonic time just before they were taken.
        """
        with self._mutex:
            for message in messages:
                self._by_token[message.job.token] = Holding(message, taken_at)
                self._counts[message.queue_name] += 1
                if message.job.lock_duration < self.usual_duration:
                    self.hurry.set()

    @contextmanager
    def set_aside(self, most: int) -> Iterator[tuple[int, int]]:
        """Set aside for a pickup what those of other queues must not count on
        at the same time, until its jobs are held.

        Parameters:
          most(int): How many jobs it takes at most.

        Returns:
          tuple[int, int]: How many threads are idle, and how many suspects it
            may take.
        """
        with self._mutex:
            holdings = self._by_token.values()
            busy = sum(not holding.is_finishing for holding in holdings) + self._threads_set_aside
            threads = min(max(self.threads - busy, 0), most)
            has_suspect = self._suspects_set_aside or any(holding.message.job.is_suspect for holding in holdings)
            suspects = 0 if has_suspect else 1
            self._threads_set_aside += threads
            self._suspects_set_aside += suspects
        try:
            yield threads, suspects
        finally:
            with self._mutex:
                self._threads_set_aside -= threads
                self._suspects_set_aside -= suspects

    def begin(self, message: JobMessage) -> None:
        """Note that the current thread runs a job."""
        message.on_exception = self.finishing
        with self._mutex:
            if holding := self._by_token.get(message.job.token):
                holding.runner = Runner()

    def finishing(self, message: JobMessage, raised: BaseException | None = None) -> None:
        """Note that a job is about to be finished or given back: from now on
        nothing interrupts its thread, and what was on its way arrives here.

        Parameters:
          message(JobMessage)
          raised(BaseException): What its actor raised.
        """
        try:
            if self._begin_to_finish(message) and not isinstance(raised, LockLost):
                absorb(LockLost)
        except LockLost:  # it came before it was waited for
            self._begin_to_finish(message)

    def doubt(self, message: JobMessage) -> None:
        """Note that a job may or may not have been given back: it is kept, and
        its lock must be renewed before it is run.
        """
        with self._mutex:
            if holding := self._by_token.get(message.job.token):
                holding.is_finishing, holding.is_doubtful = False, True

    def lose(self, holding: Holding) -> bool:
        """Give up a job whose lock is lost, and interrupt its thread.

        Returns:
          bool: False when the job is being finished: then Redis has the last word.
        """
        message = holding.message
        with self._mutex:
            if holding.is_finishing or message.job.token not in self._by_token:
                return False
            message.lock_lost = True
            self._drop(message)
            if holding.runner is not None:
                message.interrupted = True
                holding.runner.interrupt(LockLost)
            return True

    def forget(self, message: JobMessage) -> None:
        """Note that a job is finished, given back or given up."""
        with self._mutex:
            self._drop(message)

    def clear(self) -> None:
        """Forget every job.  Those that wait in memory are not to be run any more."""
        with self._mutex:
            for holding in self._by_token.values():
                holding.message.lock_lost |= holding.runner is None
            self._by_token.clear()
            self._counts.clear()
            self._suspect = None
            self._changed.notify_all()

    def find(self, message: JobMessage) -> Holding | None:
        return self._by_token.get(message.job.token)

    def all(self) -> list[Holding]:
        with self._mutex:
            return list(self._by_token.values())

    def by_queue_and_duration(self) -> dict[tuple[str, int], list[Holding]]:
        """The jobs in groups of those that one call can renew."""
        groups: defaultdict[tuple[str, int], list[Holding]] = defaultdict(list)
        for holding in self.all():
            groups[holding.message.queue_name, holding.message.job.lock_duration].append(holding)
        return groups

    def count(self, queue_name: str) -> int:
        """How many jobs of a queue this process holds."""
        return self._counts[queue_name]

    def wait_for_room(self, queue_name: str, most: int, timeout: float) -> None:
        """Wait until at most this many jobs of a queue are held, or for so many seconds."""
        with self._mutex:
            self._wanted_counts[queue_name] = most
            self._changed.wait_for(lambda: self._counts[queue_name] <= most, timeout)
            self._wanted_counts.pop(queue_name, None)

    def wait_for_suspect(self, timeout: float) -> None:
        """Wait until the suspect that runs has ended, or for so many seconds."""
        with self._mutex:
            self._changed.wait_for(lambda: self._suspect is None, timeout)

    def claim_suspect(self, message: JobMessage) -> bool:
        """Let one suspect of the process run, a job that has stalled before."""
        with self._mutex:
            if self._suspect not in (None, message.job.token):
                return False
            self._suspect = message.job.token
            return True

    def _begin_to_finish(self, message: JobMessage) -> bool:
        """Keep interrupts away, and tell whether one is on its way."""
        with self._mutex:
            if holding := self._by_token.get(message.job.token):
                holding.is_finishing = True
            on_its_way, message.interrupted = message.interrupted, False
            return on_its_way

    def _drop(self, message: JobMessage) -> None:
        if self._by_token.pop(message.job.token, None) is None:
            return
        queue_name = message.queue_name
        self._counts[queue_name] -= 1
        if self._suspect == message.job.token:
            self._suspect = None
            self._changed.notify_all()
        elif self._counts[queue_name] <= self._wanted_counts.get(queue_name, -1):
            self._changed.notify_all()
