from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis
from dramatiq import Broker, Worker
from dramatiq.common import q_name
from dramatiq.logging import get_logger

from ..errors import QueueRefused
from ..protocol.clients import REDIS_ERRORS
from ..protocol.logtext import ids_shown, on_one_line
from ..protocol.records import ActiveJob, StalledCheck
from ..settings import Settings
from ..signals import send_signal
from .checker import StalledChecker
from .sweeper import Sweeper

#: How many odd jobs are remembered, so that each is told once.
ODDITIES_REMEMBERED = 10_000

#: Whom an outage of Redis concerns, in the words of the log lines.
ALL_QUEUES = "all queues"


class Recovery:
    """What the checks of one worker look at, and whom they tell what they did.

    Parameters:
      broker(Broker)
      worker(Worker)
      client(redis.Redis)
      settings(Settings)
      queues(Iterable[str]): The queues to check, or None for the worker's.
    """

    def __init__(
        self, broker: Broker, worker: Worker, *, client: Any, settings: Settings, queues: Iterable[str] | None
    ) -> None:
        self.logger = get_logger(__name__, type(self))
        self.broker = broker
        self.worker = worker
        self.client = client
        self.settings = settings
        self.queues = queues
        self.checker = StalledChecker(
            client,
            prefix=settings.prefix,
            stalled_interval=settings.stalled_interval,
            max_stalled_count=settings.max_stalled_count,
            batch_size=settings.batch_size,
        )
        self._troubled: set[str] = set()
        self._told: set[tuple[str, str, str]] = set()
        self._policy = "noeviction"
        self._suspected: dict[str, set[str]] = {}
        self._reported: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def sweeper(self) -> Sweeper:
        """Make the thread that does the checks."""
        return Sweeper(
            interval=self.settings.stalled_interval,
            queue_names=self.queue_names,
            visit=self.visit,
            prepare=self.warn_of_eviction,
        )

    def queue_names(self) -> list[str]:
        """The queues to check now: a worker's queues may be declared late."""
        names = self.worker.consumers if self.queues is None else self.queues
        return list(dict.fromkeys(q_name(name) for name in tuple(names)))

    def announcement(self) -> str:
        """Say what is checked, how often, and how soon a job is back."""
        settings, interval = self.settings, self.settings.stalled_interval / 1000
        soonest = settings.lock_duration / 2000 + interval
        latest = settings.lock_duration / 1000 + 2 * interval
        names = ", ".join(f"{settings.prefix}:{name}" for name in self.queue_names()) or "queues declared later"
        if settings.report_only:
            return f"Reporting stalled jobs every {interval:g} s, recovering none: {names}."
        return (
            f"Checking for stalled jobs every {interval:g} s: {names}. A job of a killed worker is back within "
            f"{soonest:g} to {latest:g} s (for locks of {settings.lock_duration / 1000:g} s)."
        )

    def visit(self, queue_name: str) -> int | None:
        """Check one queue and tell about it.  Never raises.

        Returns:
          int: The ms until the next check, or None for the usual interval.
        """
        try:
            check = self._report(queue_name) if self.settings.report_only else self.checker.sweep(queue_name)
        except redis.exceptions.ReadOnlyError as error:
            self._trouble_began(ALL_QUEUES, error)
            return None
        except (QueueRefused, redis.ResponseError) as error:
            self._trouble_ended(ALL_QUEUES)
            self._trouble_began(f"queue {queue_name!r}", error)
            return None
        except REDIS_ERRORS as error:
            self._trouble_began(ALL_QUEUES, error)
            return None
        except Exception as error:
            self._trouble_began(f"queue {queue_name!r}", error, exc_info=True)
            return None

        self._trouble_ended(ALL_QUEUES)
        self._trouble_ended(f"queue {queue_name!r}")
        if check.skipped:
            return check.throttled_for
        self._tell(check)
        return None

    def warn_of_eviction(self) -> None:
        """Warn when Redis may remove locks to free memory."""
        try:
            policy = self.client.info("memory").get("maxmemory_policy", "noeviction")
        except Exception as error:
            self.logger.debug("Could not read maxmemory-policy: %s", error)
            return
        known, self._policy = self._policy, policy
        if policy not in ("noeviction", known):
            self.logger.warning(
                "Redis has maxmemory-policy %s and may evict locks: jobs that are running would count as stalled and "
                "run twice. Set it to noeviction.",
                policy,
            )

    def _report(self, queue_name: str) -> StalledCheck:
        """What a check would do, were jobs marked by the reports before this one."""
        jobs = self.checker.inspect(queue_name)
        suspected = self._suspected.get(queue_name, set())
        self._suspected[queue_name] = {job.job_id for job in jobs if job.verdict == "mark"}

        def would(verdict: str) -> tuple[str, ...]:
            return tuple(job.job_id for job in jobs if _verdict(job, suspected) == verdict)

        return StalledCheck(
            queue_name,
            recovered=len(would("requeue")),
            failed=len(would("fail")),
            recovered_ids=would("requeue"),
            failed_ids=would("fail"),
            marked=len(would("mark")),
            dropped=len(would("drop")),
        )

    def _tell(self, check: StalledCheck) -> None:
        self._log(check)
        name = check.queue_name
        if check.failed_jobs and hasattr(self.broker, "jobs_stalled_out"):
            self.broker.jobs_stalled_out(name, check.failed_jobs)
        send_signal(self.broker, "after_stalled_check", name, recovered=check.recovered, failed=check.failed)
        if check.recovered_ids:
            send_signal(self.broker, "after_stalled_recovered", name, check.recovered_ids)
        if check.failed_ids:
            send_signal(self.broker, "after_stalled_failed", name, check.failed_ids)

    def _log(self, check: StalledCheck) -> None:
        if self.settings.report_only:
            found = (check.recovered_ids, check.failed_ids)
            if self._reported.get(check.queue_name) == found:  # nothing has changed since the last report
                return
            self._reported[check.queue_name] = found
        would = "would have been " if self.settings.report_only else ""
        name = check.queue_name
        if check.recovered_ids:
            self.logger.warning(
                "%d stalled jobs of queue %r %sbrought back: %s",
                check.recovered,
                name,
                would,
                ids_shown(check.recovered_ids),
            )
        if check.failed_ids:
            self.logger.error(
                "%d jobs of queue %r stalled too often and %sfailed: %s",
                check.failed,
                name,
                would,
                ids_shown(check.failed_ids, {job.job_id: job.name for job in check.failed_jobs}),
            )
        if len(self._told) > ODDITIES_REMEMBERED:
            self._told.clear()
        for job_id, oddity in check.oddities:
            if (name, job_id, oddity) not in self._told:
                self._told.add((name, job_id, oddity))
                self.logger.warning("Job %s of queue %r: %s", ids_shown([job_id]), name, on_one_line(oddity))

    def _trouble_began(self, where: str, error: Exception, *, exc_info: bool = False) -> None:
        if where not in self._troubled:
            self._troubled.add(where)
            self.logger.error(
                "Stalled jobs of %s are not recovered for now: %s: %s (tried again every %g s)",
                where,
                type(error).__name__,
                on_one_line(str(error)),
                self.settings.stalled_interval / 1000,
                exc_info=exc_info,
            )

    def _trouble_ended(self, where: str) -> None:
        if where in self._troubled:
            self._troubled.remove(where)
            self.logger.info("Stalled jobs of %s are recovered again.", where)
            if where == ALL_QUEUES:
                self.warn_of_eviction()


def _verdict(job: ActiveJob, suspected: set[str]) -> str:
    return job.verdict_once_marked if job.verdict == "mark" and job.job_id in suspected else job.verdict
