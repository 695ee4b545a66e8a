from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import redis

from ..errors import QueueRefused
from ..protocol import scripts
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys, id_to_bytes
from ..protocol.records import QueueCounts
from .jobs import Ended, FetchedJob, NewJob
from .replies import Reply, reply_from
from .rules import Rules
from .schedulers import Schedule, SchedulerStopped, next_job

#: What `version` of a queue's meta becomes when no other runtime has set it.
META_VERSION = "echomq:1"

#: What the argument of ``addJobs-1.lua`` that says at what to look becomes when the call is sent again.
ADDED_BEFORE = b"2"

#: How many jobs one call gives back or removes.
BATCH = 1_000


@dataclasses.dataclass(frozen=True)
class Fetch:
    """What a call is to fetch.

    Parameters:
      call(str): The id of this call, with which the tokens begin.
      count(int): How many jobs at most.
      suspects(int): How many of them may have stalled before.
      is_together(bool): Whether those may run beside each other.
      lost_call(str): The id of an earlier call whose reply was lost, or empty:
        its jobs are returned again, and no others.
    """

    call: str
    count: int
    suspects: int = 1
    is_together: bool = False
    lost_call: str = ""


DEFAULT_RULES = Rules()

#: For a call that only finishes jobs.
NOTHING = Fetch("", 0, 0)


class JobQueue:
    """One queue in Redis: each method is one call of a script.

    Parameters:
      keys(QueueKeys)
      client(redis.Redis)
      fetching_client(redis.Redis): A client that never sends a command twice by
        itself: jobs that were fetched twice would wait for their locks to end.
      rules(Rules): What :func:`.rules_of` makes of the settings.
    """

    def __init__(self, keys: QueueKeys, client: Any, fetching_client: Any, rules: Rules = DEFAULT_RULES) -> None:
        self.keys = keys
        self.client = client
        self.fetching_client = fetching_client
        self.rules = rules
        self._looks_at_all = True
        self._looks_before_adding = True

    def add(self, jobs: Sequence[NewJob]) -> None:
        """Add jobs, all or none, and once however often the call is sent."""
        looks_at_all, self._looks_before_adding = self._looks_before_adding, True
        values = [value for job in jobs for value in job]
        head = [self.keys.base, scripts.TIME, META_VERSION, int(looks_at_all)]
        add = scripts.load("addJobs-1.lua")
        add(self.client, [self.keys.meta], [*head, *values], sent_again=(len(head) - 1, ADDED_BEFORE))
        self._looks_before_adding = False  # until an error says otherwise

    def finish_and_fetch(self, finished: Sequence[Ended], fetch: Fetch = NOTHING, *, policies: str = "{}") -> Reply:
        """Finish jobs and fetch others, in one call.  One that fetches is
        never sent twice.

        Parameters:
          finished(Sequence): The jobs that have ended, and how.
          fetch(Fetch)
          policies(str): A JSON object: by the name of an actor, its
            ``lockDuration`` and ``maxStalledCount``.
        """
        parts = [
            value for job, outcome in finished for value in (job.job_id, job.token, *outcome, job.started, job.stalls)
        ]
        suspects = f"+{fetch.suspects}" if fetch.is_together else fetch.suspects
        head = [scripts.TIME, *self.rules, fetch.count, fetch.call, suspects, policies, fetch.lost_call]
        client = self.client if fetch is NOTHING else self.fetching_client
        looks_at_all, self._looks_at_all = self._looks_at_all, True
        try:
            raw = self._run("finishAndFetch-1.lua", *head, int(looks_at_all), *parts, client=client)
        except redis.ResponseError as error:
            if looks_at_all or "WRONGTYPE" not in str(error):
                raise
            raw = self._run("finishAndFetch-1.lua", *head, 1, *parts, client=client)  # which says what is wrong
        reply = reply_from(raw)
        self._looks_at_all = any(each.outcome is None for each in reply.finished)  # or again after an error
        return reply

    def requeue(self, jobs: Sequence[FetchedJob]) -> list[bytes]:
        """Give jobs back, the first of these to be taken first.

        Returns:
          list[bytes]: The ids of those that were lost before.
        """
        lost = []
        for end in range(len(jobs), 0, -BATCH):
            pairs = [part for job in jobs[max(end - BATCH, 0) : end] for part in (job.job_id, job.token)]
            lost += self._run("requeueJobs-1.lua", *pairs)
        return lost

    def put_marker_back(self, client: Any = None) -> None:
        """Wake another worker, which may fetch what this one cannot."""
        (client or self.client).zadd(self.keys.marker, {"0": 0})

    def leave_marker(self, client: Any) -> None:
        """Wake another worker if that takes no time: it looks by itself when its block ends.

        Parameters:
          client(redis.Redis): One for what nobody waits for.
        """
        with contextlib.suppress(*REDIS_ERRORS):
            self.put_marker_back(client)

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

    def advance_scheduler(self, job: FetchedJob) -> None:
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
        """Return the data of a job, or None for a job that is gone."""
        found = self.client.execute_command("HGET", self.keys.job(job_id), "data", NEVER_DECODE=True)
        return found if isinstance(found, bytes) else None

    def _run(self, script: str, *args: Any, client: Any = None, only_reads: bool = False) -> Any:
        run = scripts.load(script)
        return run(client or self.client, [self.keys.meta], [self.keys.base, *args], only_reads=only_reads)
