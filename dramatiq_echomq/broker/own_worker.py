from __future__ import annotations

import os
import time
from typing import Any

from .in_flight import InFlightJob
from .jobs import JobMessage
from .work_queue import survive_interrupts

#: After how many seconds threads are counted again: interrupts can end them.
COUNT_AGAIN_AFTER = 0.1

#: After how many seconds a job that no thread has started is looked for.
OVERLOOKED_AFTER = 1.0


class OwnWorker:
    """Dramatiq's worker of this process, once it has booted.  A process that
    was forked meanwhile has none.  Needs the mutex of whoever uses it.
    """

    def __init__(self) -> None:
        self._worker: Any = None
        self._process_id = 0
        self._alive, self._counted_at = 0, float("-inf")

    def boot(self, worker: Any) -> None:
        """Go by a worker from now on."""
        self._worker, self._process_id, self._counted_at = worker, os.getpid(), float("-inf")
        survive_interrupts(getattr(worker, "work_queue", None))

    @property
    def is_there(self) -> bool:
        return self._worker is not None and self._process_id == os.getpid()

    def live_threads(self) -> int | None:
        """Return how many threads there are to run jobs on, or None where no worker has booted."""
        if not self.is_there:
            return None
        now = time.monotonic()
        if now > self._counted_at + COUNT_AGAIN_AFTER:
            dead = sum(not thread.is_alive() for thread in getattr(self._worker, "workers", ()))
            self._alive, self._counted_at = int(self._worker.worker_threads) - dead, now
        return self._alive

    def has_lost_threads(self) -> bool:
        """Return whether some of its threads have died."""
        return self.live_threads() != int(self._worker.worker_threads)

    def consumer_thread(self, queue_name: str) -> Any:
        """Return the thread that consumes a queue, or None."""
        return getattr(self._worker, "consumers", {}).get(queue_name) if self.is_there else None

    def is_paused(self, queue_name: str) -> bool:
        """Return whether Dramatiq was told to start nothing for now."""
        return bool(getattr(self.consumer_thread(queue_name), "paused", False))

    def overlooked(self, waiting: list[InFlightJob]) -> list[InFlightJob]:
        """Return those of the jobs that have not been started that no thread will
        find: each was fetched for a free thread, and should have been started at once.
        """
        late = [job for job in waiting if not job.is_announced and time.monotonic() - job.fetched_at > OVERLOOKED_AFTER]
        if not late:
            return []
        queue = list(self._worker.work_queue.queue)
        queued = [item[-1] if isinstance(item, tuple) else item.message for item in queue]  # a tuple before 2.1
        there = {message.job for message in queued if isinstance(message, JobMessage)}
        return [job for job in late if job not in there]
