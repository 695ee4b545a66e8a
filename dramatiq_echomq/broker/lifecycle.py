from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from dramatiq import Middleware, Worker
from dramatiq.middleware import Retries, SkipMessage

from .in_flight_jobs import InFlightJobs
from .jobs import JobMessage
from .lock_renewer import LockManager
from .presence import Presence
from .processing import Processing
from .quick_hooks import QuickHooks

#: For how many seconds after its boot a process of the ``dramatiq`` command fetches nothing.  Its main process waits
#: for it to say that it has booted, 30 s at most; and for ever, if a job kills it in the middle of saying so.
FETCHES_AFTER = 0.2


class LockingBroker(QuickHooks):
    """The part of a broker that follows its messages through a worker: what
    Dramatiq tells its middleware becomes the states of jobs, and what it tells
    them about a message fits what Redis knows.

    Attributes:
      in_flight(InFlightJobs): The jobs that this process holds.
      locks(LockManager): What renews their locks, from the worker's boot to
        the end of its shutdown.
      presence(Presence | None): What shows others that this process is there.
      processing(Processing): What each thread enqueues after it has run a job.
    """

    in_flight: InFlightJobs
    locks: LockManager
    presence: Presence | None

    def __init__(self, middleware: list[Middleware] | None = None) -> None:
        self.processing: Processing = Processing()
        self._before: dict[str, Callable[..., None]] = {
            "worker_boot": self._before_worker_boot,
            "worker_shutdown": self._before_worker_shutdown,
            "process_message": self._before_process_message,
            "ack": self._before_ack,
            "nack": self._before_nack,
        }
        self._after: dict[str, Callable[..., None]] = {
            "process_boot": self._after_process_boot,
            "worker_boot": self._after_worker_boot,
            "worker_shutdown": self._after_worker_shutdown,
            "process_message": self._after_process_message,
            "skip_message": self._after_skip_message,
            "ack": self._after_ack,
            "nack": self._after_nack,
        }
        super().__init__(middleware=middleware)

    @property
    def is_draining(self) -> bool:
        """Whether the worker is about to end."""
        return self.in_flight.threads.is_draining

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        handle = self._before.get(signal)
        if handle is None:
            super().emit_before(signal, *args, **kwargs)
        else:
            handle(*args, **kwargs)

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        handle = self._after.get(signal)
        if handle is None:
            super().emit_after(signal, *args, **kwargs)
        else:
            handle(*args, **kwargs)

    def _before_worker_boot(self, worker: Worker) -> None:
        self.locks.start()
        if self.presence is not None:
            self.presence.start()
        self.in_flight.threads.boot(worker)
        super().emit_before("worker_boot", worker)

    def _after_process_boot(self) -> None:
        self.in_flight.threads.shut()
        super().emit_after("process_boot")

    def _after_worker_boot(self, worker: Worker) -> None:
        super().emit_after("worker_boot", worker)
        if not self.in_flight.threads.is_open:
            timer = threading.Timer(FETCHES_AFTER, self.in_flight.threads.open)
            timer.daemon = True
            timer.start()

    def _before_worker_shutdown(self, worker: Worker) -> None:
        self.in_flight.threads.drain()
        super().emit_before("worker_shutdown", worker)

    def _after_worker_shutdown(self, worker: Worker) -> None:
        super().emit_after("worker_shutdown", worker)
        leaves_jobs = bool(self.in_flight.all())
        self.locks.stop()
        if self.presence is not None:
            self.presence.stop(leaves_jobs=leaves_jobs)

    def _before_process_message(self, message: Any) -> None:
        if not isinstance(message, JobMessage):
            super().emit_before("process_message", message)
            return
        self.processing.enqueued_ids = set()
        if not message.job.is_refused:
            message.job.is_announced = True
            super().emit_before("process_message", message)
        if not message.job.start():
            message.fail()
            raise SkipMessage(f"job {message.job.label} is not this worker's any more")

    def _after_process_message(self, message: Any, **kwargs: Any) -> None:
        if not isinstance(message, JobMessage):
            super().emit_after("process_message", message, **kwargs)
            return
        message.job.finish(kwargs.get("exception"))
        if message.job.is_refused:
            self._skip_refused(message)
        else:
            self._tell_of_end(message, **kwargs)
        message.job.is_told = True

    def _after_skip_message(self, message: Any) -> None:
        if isinstance(message, JobMessage):
            message.job.finish()
            if message.job.is_refused:
                self._skip_refused(message)
                return
        super().emit_after("skip_message", message)
        if isinstance(message, JobMessage):
            message.job.is_told = True

    def _before_ack(self, message: Any) -> None:
        """An interrupt that comes while Dramatiq deals with an earlier one, or
        with what an actor raised, ends the thread, and the message is acked.
        """
        if isinstance(message, JobMessage) and message.job.is_untold and not self._has_retried(message):
            self._tell_of_end(message, exception=message._exception or sys.exc_info()[1])
        if not _is_refused(message):
            super().emit_before("ack", message)

    def _before_nack(self, message: Any) -> None:
        if not _is_refused(message):
            super().emit_before("nack", message)

    def _after_ack(self, message: Any) -> None:
        if not _was_refused(message):
            super().emit_after("ack", message)

    def _after_nack(self, message: Any) -> None:
        if not _was_refused(message):
            super().emit_after("nack", message)

    def _has_raised_in_retries(self, message: JobMessage) -> bool:
        """Tell whether Retries was to deal with a failure and did not: it either
        fails a message or enqueues it again, unless it raises, and Dramatiq
        goes on as if all was well.
        """
        hooks = [getattr(type(middleware), "after_process_message", None) for middleware in self.middleware]
        return Retries.after_process_message in hooks and not self._has_retried(message)

    def _has_retried(self, message: JobMessage) -> bool:
        """Return whether this thread, which has run a message, has enqueued it again."""
        return message.message_id in self.processing.enqueued_ids

    def _skip_refused(self, message: JobMessage) -> None:
        """A job that was lost while it ran is neither retried nor has a
        result: to the middleware it was skipped, if they heard of it at all.
        """
        message.fail()
        if message.job.is_announced:
            super().emit_after("skip_message", message)

    def _tell_of_end(self, message: JobMessage, *, result: Any = None, exception: BaseException | None = None) -> None:
        job = message.job
        job.result = result
        self.processing.job = job
        try:
            super().emit_after("process_message", message, result=result, exception=exception)
        finally:
            self.processing.job = None
        if job.failed_enqueue is not None and not message.failed:
            self.logger.error(
                "Job %s is failed: a message that follows from it could not be enqueued. Retry it once Redis answers.",
                job.label,
            )
            message.fail()
            message.stuff_exception(exception or job.failed_enqueue)
        elif exception is not None and not message.failed and self._has_raised_in_retries(message):
            message.fail()


def _is_refused(message: Any) -> bool:
    """Return whether nobody is to hear of a message any more."""
    return isinstance(message, JobMessage) and message.job.is_refused


def _was_refused(message: Any) -> bool:
    """Return whether nobody has heard of the end of a message."""
    return isinstance(message, JobMessage) and (message.job.is_refused and message.job.outcome is None)
