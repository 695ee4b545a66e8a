from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import redis

from ..errors import QueueRefused
from ..protocol import scripts
from ..protocol.keys import QueueKeys, id_to_bytes
from ..protocol.records import QueueCounts
from .jobs import JobMessage, TakenJob
from .schedulers import Schedule, SchedulerStopped, next_job
from .worker_id import WorkerId

#: What `version` of a queue's meta becomes when no other runtime has set it.
META_VERSION = "echomq:1"

#: How many jobs one call gives back or removes.
BATCH = 1_000

#: The shortest wait for a marker in s. Redis before 7 cuts a timeout down to whole ms, and 0 is for ever.
SHORTEST_WAIT = 0.002

#: What finishing a job comes to, as ``finishJob-1.lua`` says it.
FINISHED, FAILED_INSTEAD, NOT_OWNED, GONE = 1, 2, 0, -1


class Finished(NamedTuple):
    """What :meth:`JobQueue.finish` returns.

    Parameters:
      outcome(int): FINISHED, FAILED_INSTEAD, NOT_OWNED or GONE.
      faults(list[str]): What went wrong beside it: a parent that could not be
        told, or why the job could not complete.
    """

    outcome: int
    faults: list[str]


@dataclasses.dataclass(frozen=True)
class Pickup:
    """What a pickup brought.

    Parameters:
      jobs(list[TakenJob])
      due_in(int): In how many ms the next delayed job is due, or -1 without one.
      suspects_left(int): How many jobs were left because they stalled before.
      limited_for(int): For how many ms the queue's rate limit keeps all jobs from
        being taken, or 0.
    """

    jobs: list[TakenJob]
    due_in: int
    suspects_left: int
    limited_for: int = 0


class JobQueue:
    """One queue in Redis: each method is one call of a script.

    Parameters:
      keys(QueueKeys)
      client(redis.Redis)
      taking_client(redis.Redis): A client that never sends a command twice by
        itself: jobs that were taken twice would wait for their locks to end.
      worker(WorkerId): The process whose id each lock token begins with.
      finish_rules(str): What :func:`.finish_rules` makes of the settings.
    """

    def __init__(
        self, keys: QueueKeys, client: Any, taking_client: Any, worker: WorkerId, finish_rules: str = "{}"
    ) -> None:
        self.keys = keys
        self.finish_rules = finish_rules
        self.client = client
        self.taking_client = taking_client
        self.worker = worker
        self._unanswered = ""

    def add(
        self,
        job_id: str,
        *,
        name: str,
        data: bytes,
        opts: Mapping[str, Any],
        due: int = 0,
        delay: int = 0,
        priority: int | str = 0,
    ) -> None:
        """Add a job, once, however often the call is sent.

        Parameters:
          job_id(str): An id that no other job has had.
          name(str)
          data(bytes)
          opts(Mapping)
          due(int): When it is due in ms since the epoch, or 0 for now.
          delay(int): Instead, in how many ms it is due.
          priority(int): 0 for none, which goes before 1, which goes before 2;
            ``first`` to go before all that wait now.
        """
        when = f"+{delay}" if delay else due
        self._run(
            "addJob-1.lua", job_id, name, data, json.dumps(opts or {}), scripts.TIME, when, priority, META_VERSION
        )

    def take(
        self,
        count: int,
        *,
        worker: str,
        lock_duration: int,
        suspects: int,
        policies: Mapping[str, Any],
        idle_threads: int,
    ) -> Pickup:
        """Take jobs to run.  When the reply of the last call was lost, its
        jobs come first.

        Parameters:
          count(int): How many at most.
          worker(str): The name that the jobs keep of this worker.
          lock_duration(int): How long their locks last in ms.
          suspects(int): How many jobs to take that have stalled before.
          policies(Mapping): By the name of an actor, its ``lockDuration`` and
            ``maxStalledCount``.
          idle_threads(int): How many of the jobs begin at once.
        """
        args = (count, worker, lock_duration, suspects, json.dumps(policies), idle_threads)
        try:
            return self._take(*args)
        except (redis.ConnectionError, redis.TimeoutError):
            return self._take(*args)

    def take_unanswered(self, *, worker: str, lock_duration: int) -> Pickup:
        """Only the jobs of the last call of take() whose reply was lost."""
        if not self._unanswered:
            return Pickup([], -1, 0)
        return self._take(0, worker, lock_duration, 0, "{}", 0)

    def _take(
        self, count: int, worker: str, lock_duration: int, suspects: int, policies: str, idle_threads: int
    ) -> Pickup:
        call, lost = self.worker.next_call(), self._unanswered
        self._unanswered = lost or call
        args = [scripts.TIME, count, worker, lock_duration, call, suspects, policies, lost, idle_threads]
        rows, due_in, left, limited_for = self._run("takeJobs-1.lua", *args, client=self.taking_client)
        self._unanswered = ""
        return Pickup([TakenJob.from_row(*row) for row in rows], due_in, left, limited_for)

    def finish(self, job: TakenJob, *, target: str, value: str, trace: str) -> Finished:
        """Move a job to ``completed`` or ``failed``.

        Parameters:
          job(TakenJob)
          target(str): ``completed`` or ``failed``.
          value(str): The return value as JSON, or the reason of the failure.
          trace(str): The stack trace as a JSON list, or nothing.
        """
        args = job.job_id, job.token, scripts.TIME, target, value, trace, self.finish_rules, job.started, job.stalls
        outcome, *faults = self._run("finishJob-1.lua", *args)
        return Finished(outcome, [fault.decode("utf-8", "backslashreplace") for fault in faults])

    def give_back(self, messages: Iterable[JobMessage]) -> list[bytes]:
        """Give jobs back, the first of these to be taken first.

        Returns:
          list[bytes]: The ids of those that were lost before.
        """
        jobs, lost = [message.job for message in messages], []
        for end in range(len(jobs), 0, -BATCH):
            pairs = [part for job in jobs[max(end - BATCH, 0) : end] for part in (job.job_id, job.token)]
            lost += self._run("requeueJobs-1.lua", *pairs)
        return lost

    def wait_for_marker(self, seconds: float) -> None:
        """Wait until there may be something to take."""
        self.taking_client.bzpopmin(self.keys.marker, max(seconds, SHORTEST_WAIT))

    def counts(self) -> QueueCounts:
        """Count the jobs in each state.  It is no transaction, which Redis
        refuses when it is out of memory; a job that moves on meanwhile is
        counted at least once, since the states are read in their order.
        """
        keys = self.keys
        pipeline = self.client.pipeline(transaction=False)
        pipeline.zcard(keys.delayed).zcard(keys.prioritized).llen(keys.wait).llen(keys.paused)
        pipeline.llen(keys.active).zcard(keys.completed).zcard(keys.failed)
        delayed, prioritized, waiting, paused, active, completed, failed = pipeline.execute()
        return QueueCounts(waiting, active, delayed, prioritized, paused, completed, failed)

    def retry(self, job_id: str | bytes) -> bool:
        """Give a failed job another life."""
        return bool(self._run("retryJobs-1.lua", id_to_bytes(job_id))[0])

    def advance_scheduler(self, job: TakenJob) -> None:
        """Add the next job of the scheduler that a job belongs to.

        Raises:
          SchedulerStopped: When it cannot be known when that is due.
        """
        names = job.scheduler, job.job_id
        try:
            reply = self._run("readScheduler-1.lua", *names, scripts.TIME, only_reads=True)
        except QueueRefused as error:
            raise SchedulerStopped(str(error)) from None
        schedule = Schedule(*reply)
        following = next_job(job.scheduler, schedule)
        if following is not None:
            self._run("advanceScheduler-1.lua", *names, schedule.now, following.due, following.opts)

    def set_paused(self, paused: bool) -> None:
        self._run("setPaused-1.lua", "paused" if paused else "resumed")

    def purge(self) -> None:
        """Remove every job."""
        while self._run("purgeQueue-1.lua", BATCH):
            pass

    def data_of(self, job_id: str) -> bytes | None:
        """The data of a job, or None for a job that is gone."""
        found = self.client.execute_command("HGET", self.keys.job(job_id), "data", NEVER_DECODE=True)
        return found if isinstance(found, bytes) else None

    def _run(self, script: str, *args: Any, client: Any = None, only_reads: bool = False) -> Any:
        run = scripts.load(script)
        return run(client or self.client, [self.keys.meta], [self.keys.base, *args], only_reads=only_reads)
