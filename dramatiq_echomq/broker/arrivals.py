from __future__ import annotations

import itertools
import time
from collections import deque
from logging import Logger
from typing import TYPE_CHECKING, NamedTuple

from dramatiq.logging import get_logger

from ..protocol.mutex import make_mutex
from .encoding import UndecodableJob, message_from
from .fetched import FetchedMessages
from .in_flight import InFlightJob
from .jobs import FetchedJob, JobMessage, Outcome
from .shares import Share

if TYPE_CHECKING:
    from .in_flight_jobs import InFlightJobs


class Arrival(NamedTuple):
    """Jobs that were fetched and that nobody has noted yet.

    Parameters:
      call(str): The id of the call that fetched them.
      jobs(list[FetchedJob])
      fetched_at(float): The monotonic time just before that.
      share(Share): The threads that they were fetched for.
    """

    call: str
    jobs: list[FetchedJob]
    fetched_at: float
    share: Share


class Arrivals:
    """What was fetched from a queue, sorted by what is to be done with it.

    Parameters:
      queue_name(str)
      in_flight(InFlightJobs): The jobs that this process holds.

    Attributes:
      unread(deque[Arrival]): Replies with jobs that no thread has read yet.
      messages(FetchedMessages): Those of jobs that were not yet handed over.
      to_fail(deque): Jobs that must not run, each with its message if it has one.
      to_advance(deque[FetchedJob]): Jobs whose scheduler is to add the next.
      received_at(float): The monotonic time at which the last ones were read.
    """

    def __init__(self, queue_name: str, in_flight: InFlightJobs) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.queue_name = queue_name
        self.in_flight = in_flight
        self.unread: deque[Arrival] = deque()
        self.messages: FetchedMessages = FetchedMessages()
        self.to_fail: deque[tuple[InFlightJob, JobMessage | None]] = deque()
        self.to_advance: deque[FetchedJob] = deque()
        self.received_at: float = float("-inf")
        self._read_call = ""
        self._reading = make_mutex()
        self._sequence = itertools.count()

    @property
    def has_jobs(self) -> bool:
        """Whether there are jobs to be run or to be failed."""
        return bool(self.messages or self.to_fail)

    def __bool__(self) -> bool:
        """Whether there is anything to be done."""
        return bool(self.unread or self.messages or self.to_fail or self.to_advance)

    def receive(self) -> None:
        """Hold the jobs that were fetched.  After an interrupt, which may come anywhere, the next call goes on."""
        with self._reading:
            while self.unread:
                call, jobs, fetched_at, share = self.unread[0]
                if call != self._read_call:  # or it was asked again since its thread was interrupted
                    for job in jobs:
                        if not self.in_flight.holds(job.token):
                            self._hold(job, fetched_at)
                    self._read_call, self.received_at = call, time.monotonic()
                self.in_flight.threads.release(share)
                self.unread.popleft()

    def _hold(self, fetched: FetchedJob, fetched_at: float) -> None:
        """Hold a job, and sort it."""
        job = InFlightJob(fetched, self.queue_name, self.in_flight, next(self._sequence), fetched_at)
        self.in_flight.hold(job)
        if fetched.scheduler:
            self.to_advance.append(fetched)
        try:
            message = JobMessage(message_from(fetched, self.queue_name), job)
        except UndecodableJob as error:
            self.logger.error("Job %s of queue %r is failed: %s", job.label, self.queue_name, error)
            job.outcome = Outcome("failed", str(error), "")
            self.to_fail.append((job, None))
        else:
            if fetched.deferred_failure:
                self.to_fail.append((job, message))
            else:
                self.messages.append(message)
