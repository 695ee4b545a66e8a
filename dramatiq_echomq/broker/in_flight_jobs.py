from __future__ import annotations

import threading
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..protocol.mutex import make_mutex
from .in_flight import InFlightJob
from .job_state import BUSY, ENDED, State
from .marker_wait import MarkerWait
from .own_worker import OwnWorker
from .shares import Share, Turns
from .suspects import Suspects

if TYPE_CHECKING:
    from .channel import QueueChannel
    from .replies import Reply


class InFlightJobs:
    """The jobs that this process holds.  Counts the threads that are free for
    more, and gives each queue its share of them.  Any thread may ask and tell.
    Threads are woken only for what they wait for: each needless wake-up costs
    more than all the rest.

    Parameters:
      usual_duration(int): How many ms a lock lasts where a job does not say so.

    Attributes:
      mutex(RLock): What each change of a job's state holds.
      hurry(Event): Set when a job was fetched whose lock is shorter than usual.
      is_draining(bool): Whether the worker is about to end.
      worker(OwnWorker)
    """

    def __init__(self, usual_duration: int) -> None:
        self.usual_duration = usual_duration
        self.hurry: threading.Event = threading.Event()
        self.is_draining: bool = False
        self.worker: OwnWorker = OwnWorker()
        self._jobs: dict[bytes, InFlightJob] = {}
        self._held: Counter[str] = Counter()
        self._busy: Counter[str] = Counter()
        self._acking: Counter[str] = Counter()
        self._all_busy = 0
        self.suspects: Suspects = Suspects()
        self.turns: Turns = Turns()
        self._waiting: WeakSet[MarkerWait] = WeakSet()
        # Entered by itself: an interrupt that comes while a Condition is entered leaves it locked for ever.
        self.mutex: Any = make_mutex()
        self._changed = threading.Condition(self.mutex)

    def boot(self, worker: Any) -> None:
        """Fetch for the threads of a worker from now on."""
        with self.mutex:
            self.worker.boot(worker)
            self.is_draining = False

    def drain(self) -> None:
        """Fetch nothing any more: the worker is about to end."""
        with self.mutex:
            self.is_draining = True
            self._changed.notify_all()
            self._wake_waiting()

    def hold(self, job: InFlightJob) -> None:
        """Note a job that was fetched."""
        with self.mutex:
            self._jobs[job.fetched.token] = job
            self._held[job.queue_name] += 1
            self._busy[job.queue_name] += 1
            self._all_busy += 1
            self.suspects.in_flight += job.fetched.is_suspect
            if job.fetched.lock_duration < self.usual_duration:
                self.hurry.set()

    def holds(self, token: bytes) -> bool:
        return token in self._jobs

    def change(self, job: InFlightJob, state: State) -> None:
        """Let a job be in another state.  Only jobs call it, with the mutex held."""
        before, was_busy, job.state = job.state, job.state in BUSY, state
        if job.fetched.token not in self._jobs:
            return
        newly_busy = (state in BUSY) - was_busy
        self._busy[job.queue_name] += newly_busy
        self._all_busy += newly_busy
        self._acking[job.queue_name] += (state is State.ACKING) - (before is State.ACKING)
        if state in ENDED:
            del self._jobs[job.fetched.token]
            self._held[job.queue_name] -= 1
            self.suspects.in_flight -= job.fetched.is_suspect
        # The call that finishes a job fetches for its own queue: only others need to be woken.
        will_fetch = state is State.ACKING and not self.turns.is_for_another(job.queue_name)
        was_left_out = before is State.ACKING and self.turns.waiting and self._idle_threads(job.queue_name) > 0
        if (newly_busy < 0 and not will_fetch) or was_left_out:
            self._changed.notify_all()
        if state in ENDED and job.fetched.is_suspect:
            self._wake_waiting()

    def clear(self) -> None:
        """Forget every job.  Those that do not run yet are not to be run any more."""
        with self.mutex:
            for job in self.all():
                self.change(job, State.DONE if job.runner else State.LOST)

    def all(self) -> list[InFlightJob]:
        with self.mutex:
            return list(self._jobs.values())

    def by_queue_and_duration(self) -> dict[tuple[str, int], list[InFlightJob]]:
        """Return the jobs in groups of those that one call can renew."""
        groups: defaultdict[tuple[str, int], list[InFlightJob]] = defaultdict(list)
        for job in self.all():
            if not job.is_stuck:
                groups[job.queue_name, job.fetched.lock_duration].append(job)
        return groups

    def count(self, queue_name: str) -> int:
        """Return how many jobs of a queue this process holds."""
        return self._held[queue_name]

    def runs(self, queue_name: str) -> bool:
        """Return whether a job of a queue runs, or is about to."""
        return self._busy[queue_name] > 0

    def stranded(self, queue_name: str) -> list[InFlightJob]:
        """Return jobs of a queue that were handed over and that no thread will run,
        since an interrupt ended the one that was about to or the one that
        handed them over, or too few threads are alive.
        """
        with self.mutex:
            threads = self.worker.live_threads()
            if threads is None:
                return []
            waiting = [job for job in self._jobs.values() if job.state is State.TAKEN and job.queue_name == queue_name]
            overlooked = self.worker.overlooked(waiting)
            if not self.worker.has_lost_threads():
                return overlooked
            surplus = max(self._all_busy - len(overlooked) - threads, 0)
            others = [job for job in waiting if job not in overlooked]
            return overlooked + others[max(len(others) - surplus, 0) :]

    def reserve(self, queue_name: str, prefetch: int, *, finishes: bool = False) -> Share | None:
        """Reserve free threads for a fetch, until :meth:`release`.

        Parameters:
          queue_name(str)
          prefetch(int): How many jobs of the queue to hold at most.
          finishes(bool): Whether the same call finishes jobs.  Others leave
            threads that are about to finish one to the call that does.

        Returns:
          Share: None when no thread is free, or when it is another queue's turn.
        """
        with self.mutex:
            if self.is_draining or self.worker.is_paused(queue_name):
                return None
            room = prefetch - self._busy[queue_name] - self.turns.reserved(queue_name)
            threads = self.worker.live_threads()
            if threads is not None:
                free = self._idle_threads(queue_name) + (self._acking[queue_name] if finishes else 0)
                room = min(room, self.turns.share_of(queue_name, free))
            return self.turns.reserve(queue_name, room, self.suspects, threads) if room > 0 else None

    def reserve_for_finishing(self, queue_name: str) -> Share | None:
        """Reserve threads for a call that finishes jobs, if the queue has more jobs."""
        with self.mutex:
            prefetch = self.turns.wanting.get(queue_name)
            return self.reserve(queue_name, prefetch, finishes=True) if prefetch else None

    def note_empty(self, queue_name: str) -> None:
        """Note that a queue has nothing to fetch, or nobody who would."""
        with self.mutex:
            self.turns.wanting.pop(queue_name, None)

    def note_closed(self, queue_name: str) -> None:
        """Note that a queue has no consumer for now."""
        with self.mutex:
            self.note_empty(queue_name)
            self.suspects.note_closed(queue_name)

    def release(self, share: Share, *, keeps_suspects: bool = False) -> None:
        """Let others have what a fetch did not use, or all but its suspects."""
        with self.mutex:
            self.turns.release(share, keeps_suspects=keeps_suspects)
            if any(self._idle_threads(name) > 0 for name in self.turns.waiting):
                self._changed.notify_all()

    def wait_for_share(self, channel: QueueChannel, prefetch: int, timeout: float) -> Share | None:
        """Wait until threads can be reserved for the queue of a channel, until
        the channel has news, or for so many seconds.  Meanwhile the calls that
        finish jobs of the queue fetch for it.
        """
        name = channel.queue_name
        share: Share | None = None

        def may_go_on() -> bool:
            nonlocal share
            if self.is_draining or channel.has_news:
                return True
            share = self.reserve(name, prefetch)
            return share is not None

        with self.mutex:
            self.turns.waiting[name] = self.turns.wanting[name] = prefetch
            try:
                self._changed.wait_for(may_go_on, timeout)
            finally:
                self.turns.waiting.pop(name, None)
        return share

    def note_fetch(self, queue_name: str, reply: Reply) -> None:
        """Note which suspects a fetch found and left."""
        has_one = any(job.is_suspect for job in reply.jobs)
        with self.mutex:
            self.suspects.note_fetch(queue_name, left=reply.suspects_left, crowd=reply.crowd, has_one=has_one)

    def may_run_suspect(self, queue_name: str) -> bool:
        """Return whether one more job of a queue may run that has stalled before."""
        with self.mutex:
            return self.turns.allowed_suspects(queue_name, self.suspects, self.worker.live_threads())[0] > 0

    def add_waiting(self, marker_wait: MarkerWait) -> None:
        """Wake what waits for a job when the worker drains, or when a suspect may run."""
        with self.mutex:
            self._waiting.add(marker_wait)

    def remove_waiting(self, marker_wait: MarkerWait) -> None:
        with self.mutex:
            self._waiting.discard(marker_wait)

    def wake(self) -> None:
        with self.mutex:
            self._changed.notify_all()

    def _wake_waiting(self) -> None:
        for each in self._waiting:
            each.wake()

    def _idle_threads(self, queue_name: str) -> int:
        """Return how many threads neither have a job, nor tell Redis of one of this queue, nor are reserved."""
        return (self.worker.live_threads() or 0) - self._all_busy - self._acking[queue_name] - self.turns.reserved()
