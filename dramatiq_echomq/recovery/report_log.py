from __future__ import annotations

from collections.abc import Mapping
from logging import Logger

from dramatiq.logging import get_logger

from ..protocol.logtext import counted, ids_text, on_one_line
from ..protocol.records import StalledCheck
from .crashes import crash_text, nothing_held_text

#: How many odd jobs are remembered, so that each is told once.
ODDITIES_REMEMBERED = 10_000

#: Whom an outage of Redis concerns, in the words of the log lines.
ALL_QUEUES = "all queues"


class ReportLog:
    """The log lines of one worker's checks: what they did, what is odd, and
    when they cannot be made.

    Parameters:
      stalled_interval(int): The ms until a check is tried again.
      report_only(bool): Whether the checks only report what they would do.
    """

    def __init__(self, *, stalled_interval: int, report_only: bool) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.stalled_interval = stalled_interval
        self.report_only = report_only
        self._troubled: set[str] = set()
        self._oddities: set[tuple[str, str, str]] = set()
        self._reported: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def checked(self, check: StalledCheck, message_ids: Mapping[str, str]) -> None:
        """Log what a check did; what a report says only when it is new.

        Parameters:
          check(StalledCheck)
          message_ids(Mapping): The ids of the jobs' messages, as far as known.
        """
        self._log_hold(check)
        found = (check.recovered_ids, check.failed_ids)
        if not self.report_only or self._reported.get(check.queue_name) != found:
            self._reported[check.queue_name] = found
            self._log_recovered(check, message_ids)
            self._log_failed(check, message_ids)
        self._log_oddities(check)

    def crash_seen(self, queue_name: str, worker: str, job_ids: tuple[str, ...]) -> None:
        """Log that a worker is gone that held jobs of a queue."""
        self.logger.warning("%s", crash_text(queue_name, worker, job_ids))

    def nothing_held(self, worker: str, queue_names: tuple[str, ...]) -> None:
        """Log that a worker is gone that held nothing of some queues."""
        self.logger.info("%s", nothing_held_text(worker, queue_names))

    def cannot_look(self, text: str) -> None:
        """Log that crashed workers are not looked for."""
        self.logger.info("%s", text)

    def trouble_began(self, where: str, error: Exception, *, exc_info: bool = False) -> None:
        """Log once that checks fail.

        Parameters:
          where(str): :data:`ALL_QUEUES`, or what :func:`queue_shown` returns.
          error(Exception)
          exc_info(bool): Whether to show where the error comes from.
        """
        if where in self._troubled:
            return
        self._troubled.add(where)
        self.logger.error(
            "Stalled jobs of %s are not recovered for now: %s: %s (tried again every %g s)",
            where,
            type(error).__name__,
            on_one_line(str(error)),
            self.stalled_interval / 1000,
            exc_info=exc_info,
        )

    def trouble_ended(self, where: str) -> bool:
        """Log that checks work again.

        Returns:
          bool: False when there was no trouble.
        """
        if where not in self._troubled:
            return False
        self._troubled.remove(where)
        self.logger.info("Stalled jobs of %s are recovered again.", where)
        return True

    def _log_hold(self, check: StalledCheck) -> None:
        if check.hold and check.hold.is_new:
            self.logger.warning(
                "%s of queue %r would be recovered at once, of %d that are active: more than max_recovered_share "
                "allows. Nothing is done for one round; the next sweep recovers those that still have no lock.",
                counted(check.hold.would_recover, "job"),
                check.queue_name,
                check.hold.active,
            )

    def _log_recovered(self, check: StalledCheck, message_ids: Mapping[str, str]) -> None:
        if check.recovered_ids:
            self.logger.warning(
                "%s of queue %r %sbrought back: %s",
                counted(check.recovered, "stalled job"),
                check.queue_name,
                self._would_be,
                ids_text(check.recovered_ids, message_ids=message_ids),
            )

    def _log_failed(self, check: StalledCheck, message_ids: Mapping[str, str]) -> None:
        if check.failed_ids:
            self.logger.error(
                "%s of queue %r stalled too often and %sfailed: %s",
                counted(check.failed, "job"),
                check.queue_name,
                self._would_be,
                ids_text(check.failed_ids, {job.job_id: job.name for job in check.failed_jobs}, message_ids),
            )

    def _log_oddities(self, check: StalledCheck) -> None:
        if len(self._oddities) > ODDITIES_REMEMBERED:
            self._oddities.clear()
        for job_id, oddity in check.oddities:
            key = check.queue_name, job_id, oddity
            if key not in self._oddities:
                self._oddities.add(key)
                ids = ids_text([job_id])
                self.logger.warning("Job %s of queue %r: %s", ids, check.queue_name, on_one_line(oddity))

    @property
    def _would_be(self) -> str:
        return "would have been " if self.report_only else ""


def queue_shown(queue_name: str) -> str:
    """Name one queue in the words of the log lines."""
    return f"queue {queue_name!r}"
