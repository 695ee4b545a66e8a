from __future__ import annotations

from logging import Logger
from typing import TYPE_CHECKING

from dramatiq.logging import get_logger

from ..protocol.logtext import on_one_line
from ..signals import send_signal
from .in_flight import InFlightJob
from .replies import GONE, NOT_OWNED, Finished

if TYPE_CHECKING:
    from .broker import EchoMQBroker


class EndLog:
    """The log lines, and a signal, of jobs that could not end as their worker meant.

    Parameters:
      broker(EchoMQBroker)
    """

    def __init__(self, broker: EchoMQBroker) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.broker = broker

    def ended(self, job: InFlightJob, finished: Finished) -> None:
        """Log what became of a job, and what went wrong beside it."""
        if finished.outcome == NOT_OWNED:
            self.lost(job, _did_not_become(job))
        elif finished.outcome == GONE:
            self._warn(job, f"{_did_not_become(job)}: it was removed while it ran, or Redis evicted it")
        elif finished.outcome is None:
            self._warn(job, f"{_did_not_become(job)}, and its lock ends")
        for fault in finished.faults:
            self._warn(job, on_one_line(fault))

    def given_up(self, job: InFlightJob, error: Exception) -> None:
        """Log that a worker ends which could not tell Redis how a job ended."""
        self._warn(job, f"{_did_not_become(job)}, since the worker ends: {on_one_line(str(error))}")

    def lost(self, job: InFlightJob, what: str) -> None:
        """Log and signal that the lock of a job is another's.

        Parameters:
          job(InFlightJob)
          what(str): What could not be done to it.
        """
        self.logger.warning(
            "Job %s of queue %r %s: its lock is not this worker's any more, so another worker runs or ran it, or a "
            "check failed it.",
            job.label,
            job.queue_name,
            what,
        )
        send_signal(self.broker, "after_lock_lost", job.queue_name, job.job_id)

    def _warn(self, job: InFlightJob, what: str) -> None:
        self.logger.warning("Job %s of queue %r: %s.", job.label, job.queue_name, what.removesuffix("."))


def _did_not_become(job: InFlightJob) -> str:
    assert job.outcome is not None
    return f"did not become {job.outcome.target}"
