from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from dramatiq.middleware import Interrupt

from ..protocol.keys import id_to_text
from ..protocol.logtext import job_text
from ..protocol.payload import read_payload
from .job_state import ENDED, REFUSED, UNFINISHED, State
from .jobs import FetchedJob, Outcome
from .threads import Runner, wait_for_interrupt

if TYPE_CHECKING:
    from .in_flight_jobs import InFlightJobs


class LockLost(Interrupt):
    """Raised in an actor whose job is no longer its own: the lock ended,
    because the process was frozen or could not reach Redis, and the job may
    run on another worker by now.
    """


class InFlightJob:
    """A job that this process holds, from its fetch to its end.  Its states, and
    the method that leads from one to the next, are drawn at :class:`.State`.

    Parameters:
      fetched(FetchedJob)
      queue_name(str)
      jobs(InFlightJobs): What counts it.
      sequence(int): Its place among the jobs that this process fetched.
      fetched_at(float): The monotonic time just before it was fetched.

    Attributes:
      state(State)
      outcome(Outcome): How it ended, once that is known.
      renewed_at(float): The monotonic time just before its lock was last renewed.
      acking_since(float): The monotonic time at which Redis was first told how
        it ended, or infinity.
      runner(Runner): The thread that runs it.
      result(object): What its actor returned.
      failed_enqueue(BaseException): Why a message that follows from it could
        not be enqueued.
      is_announced(bool): Whether the middleware has heard that it starts.
      is_told(bool): Whether the middleware has heard how it ended.
      was_renewed_late(bool): Whether that has been logged.
    """

    __slots__ = (
        "_interrupt_is_coming",
        "acking_since",
        "failed_enqueue",
        "fetched",
        "fetched_at",
        "is_announced",
        "is_told",
        "jobs",
        "outcome",
        "queue_name",
        "renewed_at",
        "result",
        "runner",
        "sequence",
        "state",
        "was_renewed_late",
    )

    def __init__(
        self, fetched: FetchedJob, queue_name: str, jobs: InFlightJobs, sequence: int, fetched_at: float
    ) -> None:
        self.fetched: FetchedJob = fetched
        self.queue_name: str = queue_name
        self.jobs: InFlightJobs = jobs
        self.sequence: int = sequence
        self.fetched_at: float = fetched_at
        self.renewed_at: float = fetched_at
        self.state: State = State.TAKEN
        self.outcome: Outcome | None = None
        self.runner: Runner | None = None
        self.result: Any = None
        self.failed_enqueue: BaseException | None = None
        self.is_announced: bool = False
        self.is_told: bool = False
        self.was_renewed_late: bool = False
        self.acking_since: float = math.inf
        self._interrupt_is_coming = False

    @property
    def job_id(self) -> str:
        return id_to_text(self.fetched.job_id)

    @property
    def label(self) -> str:
        """The job as log lines show it, with the id of its message, which those of Dramatiq show."""
        return job_text(self.job_id, message_id=read_payload(self.fetched.data, self.job_id).message_id)

    @property
    def is_lost(self) -> bool:
        return self.state is State.LOST

    @property
    def has_ended(self) -> bool:
        """Whether it is not this process's any more."""
        return self.state in ENDED

    @property
    def is_refused(self) -> bool:
        """Whether it must not be started and is not finished: it has ended, or goes back."""
        return self.state in REFUSED

    @property
    def needs_renewal(self) -> bool:
        """Whether its lock must have ended by this process's own clock, or may have been given up."""
        return self.state is State.UNCERTAIN or self.is_overdue

    @property
    def is_overdue(self) -> bool:
        """Whether its lock must have ended by this process's own clock."""
        return time.monotonic() - self.renewed_at > self.fetched.lock_duration / 1000

    @property
    def is_orphaned(self) -> bool:
        """Whether the thread that ran it died, as interrupts can do to threads, even while they finish a job."""
        return self.runner is not None and not self.runner.is_alive()

    @property
    def is_untold(self) -> bool:
        """Whether the middleware has heard that it starts, and not how it ended."""
        return self.is_announced and not self.is_told and not self.is_refused

    @property
    def is_stuck(self) -> bool:
        """Whether Redis was first told of its end longer ago than its lock lasts: nobody may wait for it for ever."""
        return time.monotonic() - self.acking_since > self.fetched.lock_duration / 1000

    def start(self) -> bool:
        """Note that the current thread runs the job from now on.

        Returns:
          bool: False when the job is not this process's any more.
        """
        with self.jobs.mutex:
            if self.state is State.UNCERTAIN:  # nobody else will start it here
                self.jobs.change(self, State.LOST)
            if self.state is not State.TAKEN:
                return False
            self.runner = Runner()
            self.state = State.RUNNING  # its thread is as busy as before
            return True

    def withdraw(self) -> bool:
        """Note that the job is about to be given back.

        Returns:
          bool: False when it has been started, or is not this process's any more.
        """
        with self.jobs.mutex:
            if self.state not in (State.TAKEN, State.UNCERTAIN):
                return False
            self.jobs.change(self, State.RETURNING)
            return True

    def finish(self, raised: BaseException | None = None) -> None:
        """Note that the job is about to be finished or given back: from now on
        nothing interrupts its thread, and what was on its way arrives here.

        Parameters:
          raised(BaseException): What its actor raised.
        """
        if self.state in UNFINISHED:
            return
        try:
            if self._begin_to_finish() and not isinstance(raised, LockLost):
                wait_for_interrupt(LockLost)
        except LockLost:  # it came before it was waited for
            self._begin_to_finish()

    def acknowledge(self) -> None:
        """Note that Redis is about to be told how the job ended: then its thread is free."""
        self.finish()
        with self.jobs.mutex:
            if self.state is State.FINISHING:
                self.acking_since = time.monotonic()
                self.jobs.change(self, State.ACKING)

    def put_off(self) -> None:
        """Note that the call failed that was to finish it: its thread will try again, and is not free until it has."""
        with self.jobs.mutex:
            if self.state is State.ACKING:
                self.jobs.change(self, State.RETRYING)

    def doubt(self) -> None:
        """Note that the job may or may not have been given back: it is kept, and
        its lock must be renewed before it is run.
        """
        with self.jobs.mutex:
            if self.state not in ENDED:
                self.jobs.change(self, State.UNCERTAIN)

    def renewed(self, at: float) -> None:
        """Note that its lock was renewed, by a call that began at this monotonic time."""
        with self.jobs.mutex:
            self.renewed_at = max(self.renewed_at, at)
            if self.state is State.UNCERTAIN:
                self.jobs.change(self, State.TAKEN)

    def lose(self) -> bool:
        """Give the job up since its lock is lost, and interrupt its thread.

        Returns:
          bool: False when the job is being finished: then Redis has the last word.
        """
        with self.jobs.mutex:
            if self.state in UNFINISHED or self.state in REFUSED:
                return False
            self.jobs.change(self, State.LOST)
            if self.runner is not None:
                self._interrupt_is_coming = True
                self.runner.interrupt(LockLost)
            return True

    def end(self) -> None:
        """Note that the job is finished, given back or given up, and let go of
        what its actor returned: its thread keeps the job until it has another.
        """
        self.result = self.failed_enqueue = None
        with self.jobs.mutex:
            if self.state not in ENDED:
                self.jobs.change(self, State.DONE)

    def _begin_to_finish(self) -> bool:
        """Keep interrupts away, and tell whether one is on its way."""
        with self.jobs.mutex:
            if self.state not in UNFINISHED and self.state not in REFUSED:
                self.state = State.FINISHING  # its thread is as busy as before
            is_coming, self._interrupt_is_coming = self._interrupt_is_coming, False
            return is_coming
