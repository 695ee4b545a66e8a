from __future__ import annotations

import threading
from typing import Any

from .free_threads import FreeThreads
from .in_flight import InFlightJob
from .job_state import ENDED, State


class InFlightJobs:
    """The jobs that this process holds.  Any thread may ask and tell.

    Parameters:
      usual_duration(int): How many ms a lock lasts where a job does not say so.

    Attributes:
      threads(FreeThreads): Those that run the jobs.
      mutex(RLock): What each change of a job's state holds.
      hurry(Event): Set when a job was fetched whose lock is shorter than usual.
    """

    def __init__(self, usual_duration: int) -> None:
        self.usual_duration = usual_duration
        self.threads: FreeThreads = FreeThreads()
        self.mutex: Any = self.threads.mutex
        self.hurry: threading.Event = threading.Event()
        self._jobs: dict[bytes, InFlightJob] = {}

    def hold(self, job: InFlightJob) -> None:
        """Note a job that was fetched."""
        with self.mutex:
            self._jobs[job.fetched.token] = job
            self.threads.note_fetched(job)
            if job.fetched.lock_duration < self.usual_duration:
                self.hurry.set()

    def holds(self, token: bytes) -> bool:
        """Return whether a job is held, by the token of its lock."""
        return token in self._jobs

    def change(self, job: InFlightJob, state: State) -> None:
        """Let a job be in another state, by which its thread may be free.  Only
        jobs call it, with the mutex held.
        """
        before, job.state = job.state, state
        token = job.fetched.token
        if token in self._jobs:
            if state in ENDED:
                del self._jobs[token]
            self.threads.note_change(job, before)

    def clear(self) -> None:
        """Forget every job.  Those that do not run yet are not to be run any more."""
        with self.mutex:
            for job in self.all():
                self.change(job, State.DONE if job.runner else State.LOST)

    def all(self) -> list[InFlightJob]:
        """Return all of them, in the order in which they were fetched."""
        with self.mutex:
            return list(self._jobs.values())

    def stranded(self, queue_name: str) -> list[InFlightJob]:
        """Return jobs of a queue that were handed over and that no thread will run,
        since an interrupt ended the one that was about to or the one that
        handed them over, or too few threads are alive.
        """
        with self.mutex:
            worker, alive = self.threads.worker, self.threads.worker.live_threads()
            if alive is None:
                return []
            waiting = [job for job in self._jobs.values() if job.state is State.TAKEN and job.queue_name == queue_name]
            overlooked = worker.overlooked(waiting)
            if not worker.has_lost_threads():
                return overlooked
            surplus = max(self.threads.all_busy - len(overlooked) - alive, 0)
            others = [job for job in waiting if job not in overlooked]
            return overlooked + others[max(len(others) - surplus, 0) :]
