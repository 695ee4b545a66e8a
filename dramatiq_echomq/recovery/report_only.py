from __future__ import annotations

from ..protocol.records import JobVerdict, StalledCheck
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
        found = self.checker.verdicts(queue_name)
        marked = self._would_be_marked.get(queue_name, set())
        self._would_be_marked[queue_name] = {job.job_id for job in found if job.verdict == "mark"}
        return foreseen_check(queue_name, (_as_if_marked(job) if job.job_id in marked else job for job in found))


def _as_if_marked(job: JobVerdict) -> JobVerdict:
    return job._replace(verdict=job.verdict_once_marked) if job.verdict == "mark" else job
