"""What is said about queues."""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.job_info import JobInfo


@dataclass(frozen=True)
class JobCounts:
    """How many jobs of a queue are in each state."""

    wait: int
    paused: int
    active: int
    delayed: int
    prioritized: int
    waiting_children: int
    completed: int
    failed: int

    @property
    def waiting(self) -> int:
        """How many could be fetched, were the queue not paused."""
        return self.wait + self.paused + self.prioritized


@dataclass(frozen=True)
class RateLimit:
    """How many jobs of a queue may start in how long.

    Parameters:
      max(int): How many may start; None where only another runtime limits it.
      duration(int): In this many ms.
      wait(int): The ms until the next may start; 0 when it may now.
    """

    max: int | None
    duration: int | None
    wait: int


@dataclass(frozen=True)
class WorkerInfo:
    """A worker that waits for jobs of a queue, as its connection says.

    Parameters:
      name(str): Empty where the worker has none.
      address(str): Where the connection comes from.
      connected_for(int): In seconds.
      idle_for(int): For how many seconds it has sent nothing.
    """

    name: str
    address: str
    connected_for: int
    idle_for: int


@dataclass(frozen=True)
class QueueInfo:
    """One queue.  Times are ms since the epoch, durations ms.

    Parameters:
      name(str)
      prefix(str)
      at(int): When Redis said so.
      paused(bool)
      concurrency(int): How many jobs may be active at once; None for any.
      rate_limit(RateLimit): None without one.
      counts(JobCounts)
      marked(int): How many active jobs the last check found without a lock.
      oldest_waiting(JobInfo): Of the jobs that come next by their place or
        their priority, the one that waits longest.
      waiting_for(int): For how long it waits, or at most where it is not
        known since when: see ``waiting_since_is_known`` of the job.
      oldest_active(JobInfo): The job that was fetched first.
      active_for(int): For how long it is active.
      next_due(int): When the next delayed job is due.
      last_check(int): When the queue was last checked for stalled jobs;
        None when no check is recent enough to be known.
      next_check(int): The ms until the next check may be; None when one may now.
      workers(tuple[WorkerInfo, ...]): Those that are connected; None where
        Redis does not say.
      version(str): What the queue says about who made it.
      problem(str): Why nothing else is known of the queue: keys of the wrong
        type, or another version of the protocol.  Empty for most.
    """

    name: str
    prefix: str
    at: int
    paused: bool
    concurrency: int | None
    rate_limit: RateLimit | None
    counts: JobCounts
    marked: int
    oldest_waiting: JobInfo | None
    waiting_for: int | None
    oldest_active: JobInfo | None
    active_for: int | None
    next_due: int | None
    last_check: int | None
    next_check: int | None
    workers: tuple[WorkerInfo, ...] | None
    version: str
    problem: str = ""

    @property
    def lacks_workers(self) -> bool:
        """Whether jobs wait, are due or are active, and no worker is connected."""
        return self.workers == () and bool(self.counts.waiting or self.counts.active or self.overdue_for is not None)

    @property
    def overdue_for(self) -> int | None:
        """For how long a delayed job has been due that nobody has looked for;
        None when none is.
        """
        return self.at - self.next_due if self.next_due and self.next_due <= self.at else None


@dataclass(frozen=True)
class JobPage:
    """Jobs of one state.

    Parameters:
      jobs(tuple[JobInfo, ...]): Those that come next first; of finished ones
        the newest first.
      total(int): How many jobs the state has.
      next_offset(int): Where the next page starts; None after the last one.
    """

    jobs: tuple[JobInfo, ...]
    total: int
    next_offset: int | None


@dataclass(frozen=True)
class JobDetails:
    """One job, with what only it says.

    Parameters:
      job(JobInfo)
      states(tuple[str, ...]): The states it is in, which should be one.
      marked(bool): Whether a check has found it without a lock.
      log(tuple[str, ...]): The last lines of its log.
      children_left(int): How many jobs of its flow it waits for.
      is_worker_registered(bool): Whether the worker that holds its lock is
        registered, so that a crash of it is seen within seconds.
      worker_missing_since(int): Since when the connection of that worker is
        missing, in ms since the epoch; None while it is there.
    """

    job: JobInfo
    states: tuple[str, ...]
    marked: bool
    log: tuple[str, ...]
    children_left: int
    is_worker_registered: bool
    worker_missing_since: int | None


@dataclass(frozen=True)
class ActionResult:
    """What came of an action on jobs.

    Parameters:
      done(tuple[str, ...]): The ids of the jobs to which it was done.
      refused(dict[str, str]): By id, why it was not done to the others.
    """

    done: tuple[str, ...]
    refused: dict[str, str]
