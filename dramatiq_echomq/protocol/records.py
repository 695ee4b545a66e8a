"""What the two wings and their users tell each other about jobs and queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .payload import with_late_payload

#: What each reason starts with for which a check fails a job, ours and those of other runtimes.
STALLED = "job stalled"


@dataclass(frozen=True)
class FailedJob:
    """A job that a check moved to ``failed``.

    Parameters:
      job_id(str)
      reason(str): Its ``failedReason``.
      stalls(int): How often it has stalled.
      worker(str): The last worker that held it.
      name(str): The job's name.
      data(bytes): In the result of a check, the job's data if it was removed
        at once, else empty.
    """

    job_id: str
    reason: str
    stalls: int
    worker: str
    name: str
    data: bytes


@dataclass(frozen=True)
class StalledHold:
    """Why a check did nothing: ``max_recovered_share`` was exceeded.

    Parameters:
      would_recover(int): How many jobs it would have recovered or failed at
        once.  Counted for up to 1,000 active jobs, else an estimate.
      active(int): How many jobs are active.
      is_new(bool): Whether the hold begins with this check.
    """

    would_recover: int
    active: int
    is_new: bool


@dataclass(frozen=True)
class StalledCheck:
    """What one check of a queue did.

    Parameters:
      queue_name(str)
      recovered(int): How many jobs went back to wait.
      failed(int): How many jobs had stalled too often and went to failed.
      recovered_ids(tuple[str, ...]): Their ids, the oldest job first.
      failed_ids(tuple[str, ...])
      marked(int): How many jobs were found without a lock for the first time.
      dropped(int): How many ids left ``active`` because their job is
        finished or gone.
      skipped(bool): True when another sweeper's check was too recent.
      throttled_for(int): For a skipped check, the ms until the next may run.
      failed_jobs(tuple[FailedJob, ...]): More about the failed jobs.
      oddities(tuple[tuple[str, str], ...]): Ids, and what is odd about them.
      recovered_ages(tuple[int | None, ...]): For each recovered job, the ms
        since the worker that was lost had fetched it: the time that it ran,
        and the time that nobody had it.  None where no worker said when.
      hold(StalledHold | None): Why the check did nothing, for now.
    """

    queue_name: str
    recovered: int = 0
    failed: int = 0
    recovered_ids: tuple[str, ...] = ()
    failed_ids: tuple[str, ...] = ()
    marked: int = 0
    dropped: int = 0
    skipped: bool = False
    throttled_for: int = 0
    failed_jobs: tuple[FailedJob, ...] = ()
    oddities: tuple[tuple[str, str], ...] = ()
    recovered_ages: tuple[int | None, ...] = field(default=(), compare=False)
    hold: StalledHold | None = None


@with_late_payload
@dataclass(frozen=True)
class ActiveJob:
    """A job in ``active``, and what the next check would do to it.

    Parameters:
      job_id(str)
      name(str)
      worker(str): The worker that took it, as far as it said so (``pb``).
      lock_ttl(int | None): What is left of its lock in ms; None without a lock.
      marked(bool): Whether an earlier check found it without a lock.
      stalls(int): How often it has stalled.
      attempts(int): How many attempts were made at it.
      verdict(str): ``healthy``, ``mark``, ``requeue``, ``fail`` or ``drop``;
        ``odd`` or ``copy`` for what should not be in ``active``.
      verdict_once_marked(str): For ``mark``, the verdict after that.
      started_at(int | None): When a worker fetched it, in ms since the epoch.
      age(int | None): For how many ms it has been active.
      message_id(str): The id that Dramatiq's log lines show; for a job of
        another program that of the job.  Empty for data that is large.
      args(tuple | None): Its positional arguments; None for data that is
        large or cannot be read.
      kwargs(dict | None): Its keyword arguments, likewise.
    """

    job_id: str
    name: str
    worker: str
    lock_ttl: int | None
    marked: bool
    stalls: int
    attempts: int
    verdict: str
    verdict_once_marked: str
    started_at: int | None = None
    age: int | None = None
    message_id: str = ""
    args: tuple[Any, ...] | None = None
    kwargs: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        """The same as ``job_id``."""
        return self.job_id


class JobVerdict(NamedTuple):
    """What the next check would do to a job without a lock.

    Parameters:
      job_id(str)
      verdict(str): As in :class:`ActiveJob`.
      verdict_once_marked(str)
    """

    job_id: str
    verdict: str
    verdict_once_marked: str


@dataclass(frozen=True)
class QueueCounts:
    """How many jobs of a queue are in each state."""

    waiting: int
    active: int
    delayed: int
    prioritized: int
    paused: int
    completed: int
    failed: int
