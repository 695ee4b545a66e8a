from __future__ import annotations

import threading
from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.middleware import SkipMessage

from ..protocol.keys import id_to_text
from .begin import BeginRecorder
from .in_flight import Holdings
from .jobs import JobMessage
from .lock_renewer import LockManager
from .presence import Presence


class LockingBroker(Broker):
    """The part of a broker that follows its messages through a worker: their
    locks are kept from the worker's boot to the end of its shutdown, and what
    Dramatiq tells its middleware about a message fits what Redis knows.

    Attributes:
      holdings(Holdings): The jobs that this process holds.
      locks(LockManager): What renews their locks.
      presence(Presence | None): What shows others that this process is there.
      begins(BeginRecorder): What tells Redis that they have begun.
      is_draining(bool): Whether the worker is about to end.
    """

    holdings: Holdings
    locks: LockManager
    presence: Presence | None
    begins: BeginRecorder

    def __init__(self, middleware: list[Middleware] | None = None) -> None:
        self.is_draining = False
        self._processing = threading.local()
        super().__init__(middleware=middleware)

    def note_failed_enqueue(self, error: Exception) -> None:
        """Middleware enqueues retries and callbacks, and Dramatiq swallows
        what they raise: the message must not be acked as if all was well.
        """
        message = getattr(self._processing, "message", None)
        if message is not None:
            message.failed_enqueue = error

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        message = args[0] if args else None
        if isinstance(message, JobMessage) and message.lock_lost:
            self._refuse_lost(signal, message)
            return
        if signal == "worker_boot":
            self.locks.start()
            if self.presence is not None:
                self.presence.start()
            self.is_draining, self.holdings.threads = False, args[0].worker_threads
        elif signal == "worker_shutdown":
            self.is_draining, self.holdings.threads = True, 0
        if signal == "process_message" and isinstance(message, JobMessage):
            message.was_announced = True
        super().emit_before(signal, *args, **kwargs)
        if signal == "process_message" and isinstance(message, JobMessage):
            self.holdings.begin(message)
            if message.lock_lost:
                self._refuse_lost(signal, message)
            if not message.job.has_begun:
                self.begins.record(message.queue_name, message.job)

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        message = args[0] if args else None
        if isinstance(message, JobMessage):
            if signal in ("process_message", "skip_message"):
                self.holdings.finishing(message, kwargs.get("exception"))
            if message.lock_lost:
                self._tell_of_lost(signal, message)
                return
            if signal == "process_message":
                self._after_process_message(message, **kwargs)
                return
        super().emit_after(signal, *args, **kwargs)
        if signal == "worker_shutdown":
            self.locks.stop()
            if self.presence is not None:
                self.presence.stop()

    def _refuse_lost(self, signal: str, message: JobMessage) -> None:
        """A job that is lost is not run, and nobody is told that it ended."""
        message.fail()
        if signal == "process_message":
            raise SkipMessage(f"job {id_to_text(message.job.job_id)!r} is not this worker's any more")

    def _tell_of_lost(self, signal: str, message: JobMessage) -> None:
        """A job that was lost while it ran is neither retried nor has a
        result: to the middleware it was skipped, if they heard of it at all.
        """
        message.fail()
        if message.was_announced and signal in ("process_message", "skip_message"):
            super().emit_after("skip_message", message)

    def _after_process_message(
        self, message: JobMessage, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        message.result = result
        self._processing.message = message
        try:
            super().emit_after("process_message", message, result=result, exception=exception)
        finally:
            self._processing.message = None
        if message.failed_enqueue is not None and not message.failed:
            self.logger.error(
                "Job %r is failed: a message that follows from it could not be enqueued. Retry it once Redis answers.",
                id_to_text(message.job.job_id),
            )
            message.fail()
            message.stuff_exception(exception or message.failed_enqueue)
