from __future__ import annotations

import time
from collections.abc import Iterable
from logging import Logger
from typing import TYPE_CHECKING

from dramatiq import Consumer, MessageProxy
from dramatiq.errors import ConnectionClosed
from dramatiq.logging import get_logger

from ..errors import EchoMQError
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import id_to_text
from ..protocol.logtext import ids_text, on_one_line
from .encoding import completion_of, failure_of
from .end_log import EndLog
from .in_flight import InFlightJob
from .jobs import JobMessage
from .marker_wait import LONGEST_BLOCK, MarkerWait
from .replies import AS_TOLD, NOT_OWNED
from .schedulers import SchedulerStopped
from .shares import Share
from .stalled_failures import fail_deferred

if TYPE_CHECKING:
    from .arrivals import Arrivals
    from .broker import EchoMQBroker
    from .channel import QueueChannel
    from .free_threads import FreeThreads

#: What Redis and the scripts may raise. Dramatiq knows only one of its own errors.
CONSUMER_ERRORS = (*REDIS_ERRORS, EchoMQError)

#: For how many seconds suspects that may not run here are not offered to others again: if nobody waits, this one
#: gets the marker itself.
OFFERED_FOR = 1.0


class JobConsumer(Consumer):
    """Fetches the jobs of a queue and finishes them.  Every error of Redis
    becomes a ConnectionClosed, which Dramatiq answers with another try.

    Parameters:
      broker(EchoMQBroker)
      queue_name(str)
      prefetch(int): How many jobs of the queue to run at most.
      timeout(int): How many ms to wait for a job at most.
    """

    def __init__(self, broker: EchoMQBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.log: EndLog = EndLog(broker)
        self.broker = broker
        self.channel: QueueChannel = broker.channel(queue_name)
        self.channel.is_empty = False  # as far as this one knows
        self.arrivals: Arrivals = self.channel.arrivals
        self.threads: FreeThreads = broker.in_flight.threads
        self.prefetch = prefetch
        self.timeout: float = timeout / 1000
        self.marker_wait: MarkerWait = MarkerWait(broker.connections.fetching, self.channel.queue.keys)
        self.threads.add_waiting(self.marker_wait)
        self._offers_again_at = 0.0

    def __next__(self) -> JobMessage | None:
        try:
            if self.threads.is_draining:
                self._drain()
                return None
            return self._next_fetched() or self._fetch()
        except CONSUMER_ERRORS as error:
            raise ConnectionClosed(error) from None

    def ack(self, message: MessageProxy) -> None:
        if isinstance(message, JobMessage) and not message.job.is_refused:
            job = message.job
            ended = failure_of(message._exception) if message.failed else completion_of(job.result)
            job.outcome = job.outcome or ended
            self._end(job)

    def nack(self, message: MessageProxy) -> None:
        if isinstance(message, JobMessage) and not message.job.is_refused:
            job = message.job
            job.outcome = job.outcome or failure_of(message._exception)
            self._end(job)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give messages back that were not started, and those behind them, so
        that all keep their order.  When that fails they are kept for the next try.
        """
        channel = self.channel
        returning = [message for message in messages if isinstance(message, JobMessage)]
        try:
            if self.threads.is_draining:  # and will fetch no more
                channel.wait_for_calls()
                channel.fetch_unanswered()
                self._settle()
            self.arrivals.receive()
            returning += self.arrivals.messages.take_all()
            for job in channel.requeue([message.job for message in returning]):
                self.log.lost(job, "was not given back")
        except CONSUMER_ERRORS as error:
            self.arrivals.messages.keep(returning)
            raise ConnectionClosed(error) from None

    def close(self) -> None:
        self.threads.remove_waiting(self.marker_wait)
        self.threads.note_closed(self.channel.queue_name)
        try:
            self._end_block()
            self.requeue([])
        except (ConnectionClosed, *CONSUMER_ERRORS) as error:
            self.logger.debug("Fetched messages stay in memory for the next consumer: %s", error)
        finally:
            self.marker_wait.close()

    def _drain(self) -> None:
        """Fetch nothing, since the worker is about to end, and give back what no thread of its own will run."""
        self._end_block()
        self.requeue([])
        time.sleep(self.timeout)

    def _end_block(self) -> None:
        """Wait for the marker no more, and leave it to others, with what only this one knows of: when a job is due."""
        if self.marker_wait.end():
            self.channel.queue.leave_marker(self.broker.connections.leaving)
            self.marker_wait.has_marker = False

    def _next_fetched(self) -> JobMessage | None:
        self.arrivals.receive()
        while message := self.arrivals.messages.take():
            try:
                self.broker.locks.renew_if_overdue(message.job)
            except CONSUMER_ERRORS:
                self.arrivals.messages.keep([message])
                raise
            if not message.job.is_lost:
                return message
        return None

    def _fetch(self) -> JobMessage | None:
        """Fetch for the threads that are free, or wait for one of them, or for a job."""
        channel = self.channel
        self._settle()
        for job in channel.requeue(self.broker.in_flight.stranded(channel.queue_name)):
            self.log.lost(job, "was not given back")
        if self.broker.locks.is_cut_off:
            self.threads.note_empty(channel.queue_name)
            time.sleep(self.timeout)
            return None
        self.marker_wait.connect()
        if (self.marker_wait.is_blocking or channel.is_empty) and not (self._may_run_suspect() or self._wait_for_job()):
            return None
        channel.is_empty = False
        share = self._free_threads()
        if share is not None:
            self._fetch_for(share)
        self._settle()
        message = self._next_fetched()
        if message is None and channel.suspects_left:
            self._offer_suspects()
        if message is None and channel.is_empty and self._wait_for_job():
            channel.is_empty = False
        return message

    def _offer_suspects(self) -> None:
        """Leave the marker to a worker that may run the suspects that were found."""
        if time.monotonic() >= self._offers_again_at:
            self._offers_again_at = time.monotonic() + OFFERED_FOR
            self.channel.queue.put_marker_back()

    def _fetch_for(self, share: Share) -> None:
        """Fetch, and look on as long as only suspects were found that may not run now."""
        channel, seen = self.channel, 0
        channel.fetch(share)
        while not self.arrivals.has_jobs and seen < channel.unseen:
            seen += channel.suspects_left
            again = channel.reserve(self.prefetch)
            if again is None:
                return
            channel.fetch(again)

    def _free_threads(self) -> Share | None:
        """Reserve threads, or wait for one.  Meanwhile other workers are to have the jobs that come."""
        share = self.channel.reserve(self.prefetch)
        if share is None:
            if self.marker_wait.end():
                self.channel.queue.put_marker_back()
            share = self.threads.wait_for_share(self.channel, self.prefetch, self.timeout)
        self.marker_wait.has_marker = False
        return share

    def _settle(self) -> None:
        """Fail the jobs that must not run, and let each scheduler add its next job."""
        channel = self.channel
        while self.arrivals.to_fail:
            job, message = self.arrivals.to_fail[0]
            if message is None:
                self._end(job)
            else:
                fail_deferred(self.broker, message, self.nack)
            self.arrivals.to_fail.popleft()
        while self.arrivals.to_advance:
            fetched = self.arrivals.to_advance[0]
            try:
                channel.queue.advance_scheduler(fetched)
            except SchedulerStopped as error:
                scheduler, fault = ids_text([id_to_text(fetched.scheduler)]), on_one_line(str(error))
                self.logger.error("Job scheduler %s of queue %r stops: %s", scheduler, channel.queue_name, fault)
            self.arrivals.to_advance.popleft()

    def _wait_for_job(self) -> bool:
        """Wait until there may be something to fetch.  Return whether there may."""
        channel = self.channel
        if channel.limited_for and not self.marker_wait.is_blocking:
            time.sleep(min(self.timeout, channel.limited_for / 1000))
            return True
        self.marker_wait.start(channel.due_in / 1000 if channel.due_in >= 0 else LONGEST_BLOCK)
        return self.marker_wait.wait(self.timeout) or self._may_run_suspect()

    def _may_run_suspect(self) -> bool:
        """Return whether a suspect that was skipped may run by now."""
        return self.channel.suspects_left > 0 and self.threads.may_run_suspect(self.channel.queue_name)

    def _end(self, job: InFlightJob) -> None:
        """Finish a job in Redis as its outcome says."""
        assert job.outcome is not None
        try:
            job.acknowledge()
            self.broker.locks.renew_if_overdue(job)
            finished = self.channel.finish(job.fetched, job.outcome)
            if finished.outcome == NOT_OWNED and self.broker.locks.win_back(job):
                # The call was long on its way, and nobody recovered the job meanwhile.
                finished = self.channel.finish(job.fetched, job.outcome)
        except CONSUMER_ERRORS as error:
            if not (self.threads.is_draining and job.is_stuck):
                job.put_off()
                raise ConnectionClosed(error) from None
            job.end()
            self.log.given_up(job, error)
            return
        except Exception:  # a mistake somewhere: its lock ends, its thread is free, and a check decides
            job.end()
            raise
        job.end()
        if finished != AS_TOLD:
            self.log.ended(job, finished)
