from __future__ import annotations

import itertools
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dramatiq import Consumer, MessageProxy
from dramatiq.errors import ConnectionClosed
from dramatiq.logging import get_logger

from ..errors import EchoMQError
from ..protocol.clients import REDIS_ERRORS, socket_timeout_of
from ..protocol.keys import id_to_text
from ..protocol.logtext import on_one_line
from .in_flight import Holdings
from .jobs import (
    JobMessage,
    TakenJob,
    UndecodableJob,
    failed_reason_of,
    message_from,
    return_value_of,
    stack_trace_of,
)
from .lock_renewer import LockManager
from .queue import GONE, NOT_OWNED, JobQueue, Pickup
from .schedulers import SchedulerStopped

#: What Redis and the scripts may raise. Dramatiq knows only one of its own errors.
CONSUMER_ERRORS = (*REDIS_ERRORS, EchoMQError)

#: How long to wait while only suspects are left, in seconds.
SUSPECT_WAIT = 0.1


class Desk:
    """What the consumers of one queue share, one after the other: a consumer
    ends with its connection, the jobs in memory do not.

    Parameters:
      queue(JobQueue)
      holdings(Holdings)
      locks(LockManager)
      is_draining(Callable): Tells whether the worker is about to end.
      lock_duration(int): How many ms a lock lasts where a job does not say so.
      policies(Callable): Gives what actors say about their jobs, by name.
      stalled_out(Callable): Called with a message that an earlier stall has
        failed, when it is to be nacked with the reason.
    """

    def __init__(
        self,
        queue: JobQueue,
        *,
        holdings: Holdings,
        locks: LockManager,
        is_draining: Callable[[], bool],
        lock_duration: int,
        policies: Callable[[], Mapping[str, Any]],
        stalled_out: Callable[[JobMessage, Consumer], None],
    ) -> None:
        self.queue = queue
        self.queue_name = queue.keys.queue_name
        self.holdings = holdings
        self.locks = locks
        self.is_draining = is_draining
        self.lock_duration = lock_duration
        self.policies = policies
        self.stalled_out = stalled_out
        self.prefetched: deque[JobMessage] = deque()
        self.to_advance: deque[TakenJob] = deque()
        self.sequence = itertools.count()


class JobConsumer(Consumer):
    """Takes the jobs of a queue and finishes them.  Every error of Redis
    becomes a ConnectionClosed, which Dramatiq answers with another try.

    Parameters:
      desk(Desk)
      prefetch(int): How many jobs to hold at most.
      timeout(int): How many ms to wait for a job at most.
    """

    def __init__(self, desk: Desk, prefetch: int, timeout: int) -> None:
        self.logger = get_logger(__name__, type(self))
        self.desk = desk
        self.prefetch = prefetch
        self.timeout = timeout / 1000
        self.worker_name = f"{socket.gethostname()}:{os.getpid()}"
        socket_timeout = socket_timeout_of(desk.queue.taking_client)
        self.longest_block = min(self.timeout, socket_timeout / 2) if socket_timeout else self.timeout

    def __next__(self) -> JobMessage | None:
        try:
            if self.desk.is_draining():
                self._drain()
                return None
            return self._from_memory() or self._from_redis()
        except CONSUMER_ERRORS as error:
            raise ConnectionClosed(error) from None

    def ack(self, message: MessageProxy) -> None:
        self._finish(message, "completed", return_value_of(getattr(message, "result", None)), "")

    def nack(self, message: MessageProxy) -> None:
        exception = message._exception
        self._finish(message, "failed", failed_reason_of(exception), stack_trace_of(exception))

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give messages back that were not begun, and the prefetched ones
        behind them, so that all of them keep their order.  When that fails
        they are kept like prefetched ones, for the next try.
        """
        self.desk.prefetched.extend(_own(messages))
        returned: list[JobMessage] = []
        try:
            if self.desk.is_draining():  # and will take no more
                self._receive_unanswered()
            returned = _in_order(self.desk.prefetched)
            for message in returned:
                self.desk.holdings.finishing(message)
            lost_ids = self.desk.queue.give_back(returned)
        except CONSUMER_ERRORS as error:
            for message in returned:
                self.desk.holdings.doubt(message)
            self.desk.prefetched = deque(_in_order(self.desk.prefetched))
            raise ConnectionClosed(error) from None
        self.desk.prefetched.clear()
        for message in returned:
            self.desk.holdings.forget(message)
        for job_id in lost_ids:
            self._warn_of_lost(job_id, "was not given back", "not this worker's any more")

    def close(self) -> None:
        try:
            self.requeue([])
        except ConnectionClosed as error:
            self.logger.debug("Prefetched messages stay in memory for the next consumer: %s", error)

    def _drain(self) -> None:
        """A worker that is about to end takes nothing, and gives back at once
        what no thread of its own will run.
        """
        self.requeue([])
        time.sleep(self.timeout)

    def _from_memory(self) -> JobMessage | None:
        prefetched = self.desk.prefetched
        for _ in range(len(prefetched)):
            self.desk.locks.renew_if_overdue(prefetched[0])
            message = prefetched.popleft()
            if message.lock_lost:
                continue
            if not message.job.is_suspect or self.desk.holdings.claim_suspect(message):
                return message
            prefetched.append(message)
        return None

    def _from_redis(self) -> JobMessage | None:
        desk = self.desk
        self._advance_schedulers()
        room = self.prefetch - desk.holdings.count(desk.queue_name)
        refill = max(1, self.prefetch // 4)
        if desk.locks.is_cut_off:
            time.sleep(self.timeout)
            return None
        if room < refill:
            if desk.prefetched:
                desk.holdings.wait_for_suspect(self.timeout)
            else:
                desk.holdings.wait_for_room(desk.queue_name, self.prefetch - refill, self.timeout)
            return None

        taken_at = time.monotonic()
        with desk.holdings.set_aside(room) as (idle_threads, suspects):
            pickup = desk.queue.take(
                room,
                worker=self.worker_name,
                lock_duration=desk.lock_duration,
                suspects=suspects,
                idle_threads=idle_threads,
                policies=desk.policies(),
            )
            self._receive(pickup.jobs, taken_at)
        message = self._from_memory()
        if message is None and not pickup.jobs:
            self._wait(pickup)
        return message

    def _receive(self, jobs: list[TakenJob], taken_at: float) -> None:
        """Keep the jobs that can run, then fail those that must not."""
        messages, undecodable = [], []
        for job in jobs:
            try:
                messages.append(JobMessage(message_from(job, self.desk.queue_name), job, next(self.desk.sequence)))
            except UndecodableJob as error:
                undecodable.append((job, error))
        runnable = [message for message in messages if not message.job.deferred_failure]
        self.desk.holdings.hold(runnable, taken_at)
        self.desk.prefetched.extend(runnable)
        self.desk.to_advance.extend(job for job in jobs if job.scheduler)
        self._advance_schedulers()
        for message in messages:
            if message.job.deferred_failure:
                self.desk.stalled_out(message, self)
        for job, fault in undecodable:
            self.logger.error("Job %r of queue %r is failed: %s", id_to_text(job.job_id), self.desk.queue_name, fault)
            self._finish_job(job, "failed", str(fault), "")

    def _receive_unanswered(self) -> None:
        taken_at = time.monotonic()
        pickup = self.desk.queue.take_unanswered(worker=self.worker_name, lock_duration=self.desk.lock_duration)
        self._receive(pickup.jobs, taken_at)

    def _advance_schedulers(self) -> None:
        """Add the next job of each scheduler that a job was taken of."""
        while self.desk.to_advance:
            job = self.desk.to_advance[0]
            try:
                self.desk.queue.advance_scheduler(job)
            except SchedulerStopped as error:
                scheduler = id_to_text(job.scheduler)
                self.logger.error("Job scheduler %r of queue %r stops: %s", scheduler, self.desk.queue_name, error)
            self.desk.to_advance.popleft()

    def _wait(self, pickup: Pickup) -> None:
        if pickup.suspects_left or self.desk.prefetched:
            self.desk.holdings.wait_for_suspect(min(self.timeout, SUSPECT_WAIT))
            return
        if pickup.limited_for:
            time.sleep(min(self.timeout, pickup.limited_for / 1000))
            return
        seconds = self.longest_block
        if pickup.due_in >= 0:
            seconds = min(seconds, pickup.due_in / 1000)
        if seconds > 0:
            self.desk.queue.wait_for_marker(seconds)

    def _finish(self, message: MessageProxy, target: str, value: str, trace: str) -> None:
        if not isinstance(message, JobMessage) or message.lock_lost:
            return
        try:
            self.desk.holdings.finishing(message)
            self.desk.locks.renew_if_overdue(message)
            self._finish_job(message.job, target, value, trace, message)
        except CONSUMER_ERRORS as error:
            raise ConnectionClosed(error) from None
        self.desk.holdings.forget(message)

    def _finish_job(
        self, job: TakenJob, target: str, value: str, trace: str, message: JobMessage | None = None
    ) -> None:
        finished = self.desk.queue.finish(job, target=target, value=value, trace=trace)
        if finished.outcome == NOT_OWNED and message is not None and self.desk.locks.win_back(message):
            # The call was long on its way, and nobody recovered the job meanwhile.
            finished = self.desk.queue.finish(job, target=target, value=value, trace=trace)
        if finished.outcome == NOT_OWNED:
            self._warn_of_lost(job.job_id, f"did not become {target}", "not this worker's any more")
        elif finished.outcome == GONE:
            self._warn(job, f"did not become {target}: it was removed while it ran, or Redis evicted it")
        for fault in finished.faults:
            self._warn(job, on_one_line(fault))

    def _warn(self, job: TakenJob, what: str) -> None:
        self.logger.warning("Job %r of queue %r: %s.", id_to_text(job.job_id), self.desk.queue_name, what)

    def _warn_of_lost(self, job_id: bytes, what: str, state: str) -> None:
        self.logger.warning(
            "Job %r of queue %r %s: its lock is %s, so another worker runs or ran it, or a check failed it.",
            id_to_text(job_id),
            self.desk.queue_name,
            what,
            state,
        )


def _in_order(messages: Iterable[JobMessage]) -> list[JobMessage]:
    return sorted((message for message in messages if not message.lock_lost), key=lambda message: message.sequence)


def _own(messages: Iterable[MessageProxy]) -> list[JobMessage]:
    return [message for message in messages if isinstance(message, JobMessage)]
