from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import redis

from ..errors import QueueRefused
from .arrivals import Arrival, Arrivals
from .group_commit import GroupCommit, Part
from .in_flight import InFlightJob
from .jobs import Ended, FetchedJob, Outcome
from .parts import FetchPart, FinishPart
from .queue import Fetch, JobQueue
from .replies import Finished, Reply
from .shares import Share

if TYPE_CHECKING:
    from .broker import EchoMQBroker
    from .free_threads import FreeThreads
    from .in_flight_jobs import InFlightJobs

#: For how many seconds after a fetch its jobs may be about to end. Those that end sooner end together.
QUICK = 0.002


class QueueChannel(GroupCommit):
    """This process's calls for one queue, and what they brought.  Consumers come
    and go with their connections, this stays.

    Parameters:
      broker(EchoMQBroker)
      queue(JobQueue)

    Attributes:
      arrivals(Arrivals): What was fetched.
      is_empty(bool): Whether the last fetch found fewer jobs than it wanted.
      due_in(int): In how many ms after it the next delayed job is due, or -1.
      suspects_left(int): How many jobs the last fetch left because they stalled before.
      unseen(int): How many jobs wait, when so many suspects were skipped that
        there may be others behind them, else 0.
      limited_for(int): For how many ms after it a rate limit lets no job start, or 0.
    """

    def __init__(self, broker: EchoMQBroker, queue: JobQueue) -> None:
        super().__init__()
        self.broker = broker
        self.queue = queue
        self.queue_name: str = queue.keys.queue_name
        self.in_flight: InFlightJobs = broker.in_flight
        self.threads: FreeThreads = broker.in_flight.threads
        self.arrivals: Arrivals = Arrivals(self.queue_name, self.in_flight)
        self.is_empty: bool = False
        self.due_in: int = -1
        self.suspects_left: int = 0
        self.unseen: int = 0
        self.limited_for: int = 0
        self._unanswered: tuple[str, Share] | None = None

    def finish(self, job: FetchedJob, outcome: Outcome) -> Finished:
        """Tell Redis how a job has ended."""
        part = FinishPart(job, outcome)
        self.submit(part)
        assert part.finished is not None
        return part.finished

    def fetch(self, share: Share) -> None:
        """Fetch jobs for a share of the threads."""
        try:
            self.submit(FetchPart(share))
            self.arrivals.receive()
        finally:
            self.threads.release(share)

    def wait_for_calls(self) -> None:
        """Wait for a call that is under way: what it fetches is behind what has been fetched before."""
        self.submit(Part())

    def fetch_unanswered(self) -> None:
        """Fetch only the jobs of a call whose reply was lost."""
        if self._unanswered:
            self.fetch(self._unanswered[1])

    def reserve(self, prefetch: int) -> Share | None:
        """Reserve free threads for a fetch; those of a call whose reply was
        lost are reserved as long as it is.
        """
        if self._unanswered:
            return self._unanswered[1]
        return self.threads.reserve(self.queue_name, prefetch)

    def requeue(self, jobs: Iterable[InFlightJob]) -> list[InFlightJob]:
        """Give jobs back that were not started, to be fetched in the order in
        which they were.

        Returns:
          list[InFlightJob]: Those that had been lost before.
        """
        returned = sorted((job for job in jobs if job.withdraw()), key=lambda job: job.sequence)
        if not returned:
            return []
        try:
            lost_ids = set(self.queue.requeue([job.fetched for job in returned]))
        except BaseException:
            for job in returned:
                job.doubt()
            raise
        for job in returned:
            job.end()
        return [job for job in returned if job.fetched.job_id in lost_ids]

    @property
    def has_news(self) -> bool:
        """Whether a consumer that waits for threads has something else to do."""
        return bool(self.arrivals or self.is_empty or self._unanswered)

    def expects_more(self) -> bool:
        """Return whether other jobs that have just been fetched still run, and no thread is free for a new one."""
        is_soon = time.monotonic() < self.arrivals.received_at + QUICK and self.threads.runs(self.queue_name)
        return is_soon and not any(isinstance(part, FetchPart) for part in self.pending)

    def send(self, parts: Sequence[Part]) -> None:
        """Make one call of all parts.  When the queue has more jobs, the call that
        finishes jobs fetches for their threads as well.
        """
        finishing = [part for part in parts if isinstance(part, FinishPart)]
        fetching = [part for part in parts if isinstance(part, FetchPart)]
        carried = None if fetching or self._unanswered else self.threads.reserve_for_finishing(self.queue_name)
        share = fetching[0].share if fetching else carried
        if not finishing and share is None:
            return
        reply = None
        try:
            reply = self._call([(part.job, part.outcome) for part in finishing], share)
        finally:
            if carried and not (reply and reply.jobs):
                self.threads.release(carried)
        if carried:
            self._deliver()
        for part, finished in zip(finishing, reply.finished, strict=True):
            part.finished = finished
            part.settle()
        if carried and self.has_news:
            self.threads.wake()

    def _call(self, finishing: list[Ended], share: Share | None) -> Reply:
        """Make the call, again when its reply is lost; jobs finish also where none can be fetched."""
        try:
            return self._call_once(finishing, share)
        except (redis.ConnectionError, redis.TimeoutError):
            if share is None:
                raise
        except QueueRefused:
            if share is None or not finishing:
                raise
        return self._call_once(finishing, None if finishing else share)

    def _call_once(self, finishing: list[Ended], share: Share | None) -> Reply:
        started, lost = time.monotonic(), self._unanswered
        if share is None:
            return self.queue.finish_and_fetch(finishing)
        fetch = Fetch(
            self.broker.worker_id.next_call(), share.threads, share.suspects, share.is_together, lost[0] if lost else ""
        )
        try:
            reply = self.queue.finish_and_fetch(finishing, fetch, policies=self.broker.policies)
            if lost:
                share = lost[1]
            if reply.jobs:
                self.arrivals.unread.append(Arrival(fetch.lost_call or fetch.call, reply.jobs, started, share))
        except QueueRefused:  # before anything was fetched
            raise
        except BaseException:
            self._unanswered = lost or (fetch.call, share)
            self._unanswered[1].is_unanswered = True
            raise
        self._unanswered, share.is_unanswered = None, False
        if lost and not reply.jobs:
            self.threads.release(share)
        self.is_empty = not lost and len(reply.jobs) < share.threads
        if self.is_empty:
            self.threads.note_empty(self.queue_name)
        self.due_in, self.suspects_left, self.limited_for = reply.due_in, reply.suspects_left, reply.limited_for
        self.unseen = reply.unseen
        self.threads.note_fetch(self.queue_name, reply)
        return reply

    def _deliver(self) -> None:
        """Hand jobs over to the worker's threads before those ask for more.  The
        consumer, which waits, wakes up only for what is not simply to be run.
        """
        thread = self.threads.worker.consumer_thread(self.queue_name)
        self.arrivals.receive()
        while thread is not None and (message := self.arrivals.messages.take()):
            if message.job.is_lost or message.job.needs_renewal or message.actor_name not in self.broker.actors:
                self.arrivals.messages.keep([message])
                return
            thread.handle_message(message)
