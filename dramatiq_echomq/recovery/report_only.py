from __future__ import annotations

from ..protocol.records import ActiveJob, StalledCheck
from ..protocol.replies import foreseen_check
from .checker import StalledChecker


class StalledReporter:
    """Finds out what the checks of a queue would do, and writes nothing.

    A check recovers what an earlier one has marked.  Since a report marks
    nothing, the reporter remembers what the report before would have marked.

    Parameters:
      checker(StalledChecker)
    """

    def __init__(self, checker: StalledChecker) -> None:
        self.checker = checker
        self._would_be_marked: dict[str, set[str]] = {}

    def report(self, queue_name: str) -> StalledCheck:
        """Return what a check would do now, had the reports before been checks.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        jobs = self.checker.inspect(queue_name)
        marked = self._would_be_marked.get(queue_name, set())
        self._would_be_marked[queue_name] = {job.job_id for job in jobs if job.verdict == "mark"}
        return foreseen_check(queue_name, ((job.job_id, _verdict(job, marked)) for job in jobs))


def _verdict(job: ActiveJob, marked: set[str]) -> str:
    return job.verdict_once_marked if job.verdict == "mark" and job.job_id in marked else job.verdict
