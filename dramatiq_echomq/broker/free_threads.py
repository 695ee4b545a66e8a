from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..protocol.mutex import make_mutex
from .job_state import BUSY, ENDED, State
from .marker_wait import MarkerWait
from .own_worker import OwnWorker
from .shares import Share, Turns
from .suspects import Suspects

if TYPE_CHECKING:
    from .channel import QueueChannel
    from .in_flight import InFlightJob
    from .replies import Reply


class FreeThreads:
    """The threads of this process's worker that are free for more jobs, of
    which each queue gets its share.  Any thread may ask and tell.  Threads are
    woken only for what they wait for: each needless wake-up costs more than
    all the rest.

    Attributes:
      mutex(RLock): What each change of a job's state holds.
      is_open(bool): Whether jobs may be fetched yet.
      is_draining(bool): Whether the worker is about to end.
      worker(OwnWorker)
      suspects(Suspects)
      turns(Turns)
      all_busy(int): How many jobs have a thread of their own, or wait for one.
    """

    def __init__(self) -> None:
        self.is_open: bool = True
        self.is_draining: bool = False
        self.worker: OwnWorker = OwnWorker()
        self.suspects: Suspects = Suspects()
        self.turns: Turns = Turns()
        self.all_busy: int = 0
        self._busy: Counter[str] = Counter()
        self._acking: Counter[str] = Counter()
        self._waiting: WeakSet[MarkerWait] = WeakSet()
        # Entered by itself: an interrupt that comes while a Condition is entered leaves it locked for ever.
        self.mutex: Any = make_mutex()
        self._changed = threading.Condition(self.mutex)

    def boot(self, worker: Any) -> None:
        """Fetch for the threads of a worker from now on."""
        with self.mutex:
            self.worker.boot(worker)
            self.is_draining = False

    def shut(self) -> None:
        """Fetch nothing before :meth:`open`, unless a worker is at it already."""
        with self.mutex:
            self.is_open = self.worker.is_there

    def open(self) -> None:
        with self.mutex:
            self.is_open = True
            self._changed.notify_all()

    def drain(self) -> None:
        """Fetch nothing any more: the worker is about to end."""
        with self.mutex:
            self.is_draining = True
            self._changed.notify_all()
            self._wake_waiting()

    def note_fetched(self, job: InFlightJob) -> None:
        """Note a job that waits for a thread.  Needs the mutex."""
        self._busy[job.queue_name] += 1
        self.all_busy += 1
        self.suspects.in_flight += job.fetched.is_suspect

    def note_change(self, job: InFlightJob, before: State) -> None:
        """Note that a job was in another state before.  Needs the mutex."""
        state, queue_name = job.state, job.queue_name
        newly_busy = (state in BUSY) - (before in BUSY)
        self._busy[queue_name] += newly_busy
        self.all_busy += newly_busy
        self._acking[queue_name] += (state is State.ACKING) - (before is State.ACKING)
        # The call that finishes a job fetches for its own queue: only others need to be woken.
        will_fetch = state is State.ACKING and not self.turns.is_for_another(queue_name)
        if (newly_busy < 0 and not will_fetch) or (before is State.ACKING and self._leaves_out(queue_name)):
            self._changed.notify_all()
        if job.fetched.is_suspect and state in ENDED:
            self.suspects.in_flight -= 1
            self._wake_waiting()

    def runs(self, queue_name: str) -> bool:
        """Return whether a job of a queue runs, or is about to."""
        return self._busy[queue_name] > 0

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
            if self.is_draining or not self.is_open or self.worker.is_paused(queue_name):
                return None
            room = prefetch - self._busy[queue_name] - self.turns.reserved(queue_name)
            threads = self.worker.live_threads()
            if threads is not None:
                free = self._idle_threads(queue_name, threads) + (self._acking[queue_name] if finishes else 0)
                room = min(room, self.turns.share_of(queue_name, free))
            return self.turns.reserve(queue_name, room, self.suspects, threads) if room > 0 else None

    def reserve_for_finishing(self, queue_name: str) -> Share | None:
        """Reserve threads for a call that finishes jobs, if the queue has more jobs."""
        with self.mutex:
            prefetch = self.turns.wanting.get(queue_name)
            return self.reserve(queue_name, prefetch, finishes=True) if prefetch else None

    def release(self, share: Share) -> None:
        """Let others have what a fetch did not use."""
        with self.mutex:
            self.turns.release(share)
            alive = self.worker.live_threads()
            if any(self._idle_threads(name, alive) > 0 for name in self.turns.waiting):
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

    def note_empty(self, queue_name: str) -> None:
        """Note that a queue has nothing to fetch, or nobody who would."""
        with self.mutex:
            self.turns.wanting.pop(queue_name, None)

    def note_closed(self, queue_name: str) -> None:
        """Note that a queue has no consumer for now."""
        with self.mutex:
            self.note_empty(queue_name)
            self.suspects.note_closed(queue_name)

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
        """Let consumers that wait for threads look up: one of them has something else to do."""
        with self.mutex:
            self._changed.notify_all()

    def _wake_waiting(self) -> None:
        for each in self._waiting:
            each.wake()

    def _leaves_out(self, queue_name: str) -> bool:
        """Return whether a call of a queue has left a thread idle for which others wait."""
        return bool(self.turns.waiting) and self._idle_threads(queue_name, self.worker.live_threads()) > 0

    def _idle_threads(self, queue_name: str, alive: int | None) -> int:
        """Return how many of the threads that are alive neither have a job, nor tell Redis of one of this queue, nor
        are reserved.
        """
        return (alive or 0) - self.all_busy - self._acking[queue_name] - self.turns.reserved()
