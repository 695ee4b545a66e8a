from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dramatiq import Broker, Middleware

from .protocol.records import StalledCheck


class StalledSignals(Middleware):
    """Base class for middleware that wants to know what the checks of
    stalled jobs did.  The hooks are called on the checker's thread.
    """

    def after_stalled_check(self, broker: Broker, queue_name: str, *, recovered: int, failed: int) -> None:
        """Called after each check of a queue, also when it found nothing.

        Parameters:
          broker(Broker)
          queue_name(str)
          recovered(int): How many jobs went back to wait.
          failed(int): How many jobs had stalled too often and were failed.
        """

    def after_stalled_recovered(self, broker: Broker, queue_name: str, job_ids: Sequence[str]) -> None:
        """Called after a check that brought jobs back to wait.

        Parameters:
          broker(Broker)
          queue_name(str)
          job_ids(Sequence[str]): The jobs, the oldest first.
        """

    def after_stalled_failed(self, broker: Broker, queue_name: str, job_ids: Sequence[str]) -> None:
        """Called after a check that failed jobs for good.

        Parameters:
          broker(Broker)
          queue_name(str)
          job_ids(Sequence[str]): The jobs, the oldest first.
        """

    def after_stalled_report(
        self, broker: Broker, queue_name: str, *, would_recover: Sequence[str], would_fail: Sequence[str]
    ) -> None:
        """Called instead of the others when checks only report: nothing was
        done to these jobs.  A report comes with every check of every worker
        process, so a job is named again and again while it stays as it is.

        Parameters:
          broker(Broker)
          queue_name(str)
          would_recover(Sequence[str]): The jobs that a check would have
            brought back to wait, the oldest first.
          would_fail(Sequence[str]): The jobs that it would have failed.
        """

    def after_stalled_sweep(
        self,
        broker: Broker,
        queue_name: str,
        *,
        seconds: float,
        check: StalledCheck | None,
        error: Exception | None,
    ) -> None:
        """Called when a check was made, or could not be made, before the
        others; also for checks that only report.  Not called when another
        worker's check was too recent for one of its own.

        Parameters:
          broker(Broker)
          queue_name(str)
          seconds(float): How long it took.
          check(StalledCheck): What the check did, or in a report would have
            done; None when it could not be made.
          error(Exception): Why it could not be made, else None.
        """

    def after_stalled_hold(self, broker: Broker, queue_name: str, *, would_recover: int, active: int) -> None:
        """Called when a check begins to hold: it would have recovered more of
        the active jobs at once than ``max_recovered_share`` allows.  Nothing
        is done to them for one round, and the next sweep goes through.

        Parameters:
          broker(Broker)
          queue_name(str)
          would_recover(int): How many jobs would have gone back to wait or
            failed.  Counted for up to 1,000 active jobs, else an estimate.
          active(int): How many jobs are active.
        """

    def after_crash_seen(self, broker: Broker, queue_name: str, worker: str, job_ids: Sequence[str]) -> None:
        """Called when a worker process is gone without having said goodbye,
        once for each queue that it worked on, before the check that recovers
        its jobs.

        Parameters:
          broker(Broker)
          queue_name(str)
          worker(str): Its host and process id.
          job_ids(Sequence[str]): The jobs of the queue that it held locks
            of, the oldest first.  Perhaps none: it was idle, or its locks had
            ended before.
        """

    def after_locks_renewed(self, broker: Broker, *, smallest_ttl: int) -> None:
        """Called after an EchoMQBroker has renewed the locks of its process,
        and every so often while it has none.

        Parameters:
          broker(Broker)
          smallest_ttl(int): The least that was left of one of the locks, in
            ms.  Usually three quarters of the lock duration; the closer to
            zero, the closer this worker is to losing its jobs.  The whole
            lock duration without any lock.
        """

    def after_lock_lost(self, broker: Broker, queue_name: str, job_id: str) -> None:
        """Called when an EchoMQBroker has given up a job of its process whose
        lock has ended or is another worker's: the process was frozen, blocked
        or cut off from Redis for too long.  The job may run elsewhere by now.

        Parameters:
          broker(Broker)
          queue_name(str)
          job_id(str)
        """


class RecoverySignals(Middleware):
    """Base class for what a broker of this package does after checks, which
    know nothing of it.
    """

    def after_queue_swept(self, broker: Broker, queue_name: str) -> None:
        """Called when a worker has looked at a queue, also when it made no
        check because another worker's was too recent.

        Parameters:
          broker(Broker)
          queue_name(str)
        """


class RecoveringMiddleware(Middleware):
    """Base class of middleware that brings back the jobs of dead workers, by
    which a broker of this package sees that it has one.
    """


def send_signal(broker: Broker, signal: str, *args: Any, **kwargs: Any) -> None:
    """Call a hook of every middleware that has it, the last added first.

    Dramatiq's own ``emit_after`` logs a CRITICAL for each middleware without
    the hook, so it is no way to send a signal that Dramatiq does not know.

    Parameters:
      broker(Broker)
      signal(str): The name of the hook, say ``after_stalled_check``.
    """
    for middleware in reversed(broker.middleware):
        try:
            hook = getattr(middleware, signal, None)
            if hook is not None:
                hook(broker, *args, **kwargs)
        except Exception:
            broker.logger.critical("Unexpected failure in %s of %r.", signal, middleware, exc_info=True)
