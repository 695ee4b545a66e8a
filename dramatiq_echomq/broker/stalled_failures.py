from __future__ import annotations

from collections.abc import Callable, Iterable
from logging import Logger
from typing import Any

from dramatiq import Broker, MessageProxy, Worker
from dramatiq.logging import get_logger
from dramatiq.middleware import Interrupt

from ..errors import EchoMQError, JobFailed, JobStalled
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys, id_to_bytes
from ..protocol.logtext import ids_text, on_one_line
from ..protocol.records import STALLED, FailedJob
from ..protocol.replies import failed_job_from
from ..protocol.scripts import load
from ..signals import RecoveringMiddleware, RecoverySignals
from .encoding import UndecodableJob, dramatiq_message_from, foreign_arguments_of
from .failure_hooks import OUTAGES, tell_failure, tell_nacked, tell_processed
from .jobs import FetchedJob, JobMessage

#: How many failures are taken at once.
TAKEN_AT_ONCE = 100

#: How many ms nobody else tells a failure that was taken.
LEASE = 60_000


class StalledFailures(RecoverySignals):
    """Tells the middleware of a broker of its jobs that checks have failed.

    A check keeps each failure of a message in Redis until it has been told.
    Whoever made the check asks for it at once.  When that process dies
    first, or has no broker of these messages, the next worker that looks at
    the queue tells it.  So the broker hears of jobs in its own Redis and
    under its own prefix, whatever the checker looks at.

    Parameters:
      client(redis.Redis): The broker's.
      prefix(str): The broker's.
    """

    def __init__(self, client: Any, prefix: str) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.client = client
        self.prefix = prefix
        self._troubled: set[str] = set()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        if not any(isinstance(middleware, RecoveringMiddleware) for middleware in broker.middleware):
            self.logger.info(
                "This worker brings back no jobs of dead workers: its broker has no StalledCheckerMiddleware. "
                "Add one, unless other workers of its queues or `dramatiq-echomq run` do it."
            )

    def after_queue_swept(self, broker: Broker, queue_name: str) -> None:
        try:
            self.tell(broker, queue_name)
        except (EchoMQError, *REDIS_ERRORS) as error:
            if queue_name not in self._troubled:
                self._troubled.add(queue_name)
                reason = on_one_line(str(error))
                self.logger.warning("Failures of stalled jobs of queue %r are told later: %s", queue_name, reason)
        else:
            self._troubled.discard(queue_name)

    def tell(self, broker: Broker, queue_name: str) -> None:
        """Tell all that is still to be told of a queue.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        keys = QueueKeys(queue_name, self.prefix)
        told: list[str] = []
        while failed_jobs := self._take(keys, told):
            told = [failed.job_id for failed in failed_jobs if self._tell_job(broker, queue_name, failed)]

    def _take(self, keys: QueueKeys, told: Iterable[str]) -> list[FailedJob]:
        args = [keys.base, TAKEN_AT_ONCE, LEASE, *map(id_to_bytes, told)]
        return [failed_job_from(row) for row in load("takeUntold-1.lua")(self.client, [keys.untold], args)]

    def _tell_job(self, broker: Broker, queue_name: str, failed: FailedJob) -> bool:
        """Tell of one job and return whether that is done with."""
        try:
            message = message_of(queue_name, failed)
            if message is not None:
                tell_failure(broker, message, JobStalled(failed.reason, failed.stalls, failed.worker))
        except (Interrupt, *OUTAGES) as error:
            self._warn(queue_name, failed, "is told later", type(error).__name__)
            return False
        except UndecodableJob as error:
            self._warn(queue_name, failed, "is told to no middleware, nor to who waits for its result", error)
        except Exception as error:
            self._warn(queue_name, failed, "could not be told", error, exc_info=True)
        return True

    def _warn(self, queue_name: str, failed: FailedJob, what: str, why: object, *, exc_info: bool = False) -> None:
        ids, reason = ids_text([failed.job_id]), on_one_line(str(why))
        self.logger.warning(
            "The failure of stalled job %s of queue %r %s: %s", ids, queue_name, what, reason, exc_info=exc_info
        )


def message_of(queue_name: str, failed: FailedJob) -> MessageProxy | None:
    """Return the message of a job that a check has failed, or None when the
    job is another program's, whose data is JSON.

    Raises:
      UndecodableJob: When the data is neither, or when an option of the
        message cannot be used.
    """
    name = failed.name.encode("utf-8", "replace")
    job = FetchedJob(id_to_bytes(failed.job_id), b"", name, failed.data, b"", failed.stalls, 0)
    message = dramatiq_message_from(job, queue_name)
    if message is None:
        foreign_arguments_of(job)
        return None
    return MessageProxy(message)


def fail_deferred(broker: Broker, message: JobMessage, nack: Callable[[Any], Any]) -> None:
    """Fail a job that was fetched although an earlier step has decided that it
    fails: a check of another runtime, or the failure of a child.  When it is
    tried again, since Redis could not be told, no callback is sent again.

    Parameters:
      broker(Broker)
      message(JobMessage)
      nack(Callable): What nacks the message.

    Raises:
      ConnectionClosed: When Redis cannot be used.
    """
    if not message.job.is_told:
        tell_processed(broker, message, error_of(message.job.fetched))
        message.job.is_told = True
    tell_nacked(broker, message, nack)


def error_of(job: FetchedJob) -> JobFailed:
    """Return the failure of a job that was fetched to be failed."""
    reason, worker = (text.decode("utf-8", "replace") for text in (job.deferred_failure, job.previous_worker))
    return JobStalled(reason, job.stalls, worker) if reason.startswith(STALLED) else JobFailed(reason, worker)
