from __future__ import annotations

import contextlib
import itertools
import os
import uuid
from collections.abc import Iterator
from typing import Any, NoReturn

import redis

from ..protocol import scripts
from ..protocol.active_jobs import read_jobs, read_verdicts
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys, id_to_bytes
from ..protocol.records import ActiveJob, JobVerdict, StalledCheck
from ..protocol.replies import StalledReply, check_from
from ..settings import SHORTEST_TTL, Settings
from ..validation import (
    require_client,
    require_hash_tag,
    require_milliseconds,
    require_no_others,
    require_prefix,
    require_share,
    require_whole_number,
)


class StalledChecker:
    """Finds the jobs of dead workers in a queue and recovers them.

    A job is stalled when it sits in ``active`` and has no lock.  The first
    check that finds it so marks it; the next one brings it back to ``wait``,
    or moves it to ``failed`` when it has stalled too often.  The checker has
    no thread of its own and works without Dramatiq.

    Parameters:
      client(redis.Redis | redis.cluster.RedisCluster): The client to use,
        with ``decode_responses`` on or off.  One made by Sentinel will do.
      prefix(str): What the keys of all queues begin with.  For a cluster it
        must carry a hash tag, as in ``{emq}``.
      stalled_interval(int): How many ms a periodic check keeps the other
        sweepers from checking the same queue.  Defaults to 30 seconds.
      max_stalled_count(int): How often a job may stall and come back.
        Defaults to 1; a job that stalls more often is moved to ``failed``.
      batch_size(int): How many ids one script call looks at, at most: one
        that takes longer ends after about 5 ms, so that Redis is never
        blocked for long.  Defaults to 1,000.
      max_recovered_share(float): The share of the active jobs that a sweep may
        recover at once; one that would recover more does nothing for one
        round.  Defaults to None: any.
      dead_message_ttl(int): How many ms a check keeps failed jobs whose opts
        do not say so.  Defaults to None: they are left alone.

    Raises:
      SettingError: When one of these cannot be used.  It is a ValueError.
    """

    def __init__(
        self,
        client: Any,
        *,
        prefix: str = Settings.prefix,
        stalled_interval: int = Settings.stalled_interval,
        max_stalled_count: int = Settings.max_stalled_count,
        batch_size: int = Settings.batch_size,
        max_recovered_share: float | None = None,
        dead_message_ttl: int | None = None,
        **unknown: NoReturn,
    ) -> None:
        require_no_others(unknown, type(self).__init__)
        require_client(client)
        self.prefix: str = require_prefix(prefix)
        require_hash_tag(client, prefix)
        self.client: Any = client
        self.stalled_interval: int = require_whole_number("stalled_interval", stalled_interval, minimum=1)
        self.max_stalled_count: int = require_whole_number("max_stalled_count", max_stalled_count, minimum=0)
        self.batch_size: int = require_whole_number("batch_size", batch_size, minimum=1)
        self.max_recovered_share: float | None = require_share("max_recovered_share", max_recovered_share)
        if dead_message_ttl is not None:
            require_milliseconds("dead_message_ttl", dead_message_ttl, minimum=SHORTEST_TTL)
        self.dead_message_ttl: int | None = dead_message_ttl
        self._sweeper_id = uuid.uuid4().hex
        self._sweeps = itertools.count(1)

    def check(self, queue_name: str, *, may_be_held: bool = False) -> StalledCheck:
        """Check a queue now, whatever other sweepers do.

        Parameters:
          queue_name(str)
          may_be_held(bool): Whether ``max_recovered_share`` holds this check
            as it does a sweep.  Whoever checks by hand means it.

        Returns:
          StalledCheck: What the check did.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        return self._sweep_in_batches(QueueKeys(queue_name, self.prefix), interval="", may_be_held=may_be_held)

    def sweep(self, queue_name: str) -> StalledCheck:
        """Check a queue unless a sweeper did so within ``stalled_interval``.
        This is what is to be called periodically, by any number of sweepers.

        Returns:
          StalledCheck: What the check did; ``skipped`` when there was none,
          and with a ``hold`` when it would have recovered too many.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        return self._sweep_in_batches(
            QueueKeys(queue_name, self.prefix), interval=self.stalled_interval, may_be_held=True
        )

    def job_stalled(self, queue_name: str, job_id: str | bytes) -> bool:
        """Tell whether a job is in ``active`` and has no lock.

        Raises:
          QueueRefused: When ``active`` is no list.
          redis.RedisError: When Redis cannot be used.
        """
        keys = QueueKeys(queue_name, self.prefix)
        is_stalled = scripts.load("isJobStalled-2.lua")
        return bool(is_stalled(self.client, [keys.active, keys.lock(job_id)], [id_to_bytes(job_id)]))

    def inspect(self, queue_name: str) -> list[ActiveJob]:
        """List the jobs in ``active``, the oldest first, with what the next
        check would do to each.  Writes nothing.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        return read_jobs(self._report(queue_name, "report"))

    def inspect_job(self, queue_name: str, job_id: str | bytes) -> ActiveJob | None:
        """Return one of the jobs in ``active`` as :meth:`inspect` does, or None
        when it is not there.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        jobs = read_jobs(self._report(queue_name, "report", id_to_bytes(job_id)))
        return jobs[0] if jobs else None

    def verdicts(self, queue_name: str) -> list[JobVerdict]:
        """Say what the next check would do to each job in ``active`` without a
        lock, the oldest first.  Writes nothing, and takes no longer than a
        check: all that :meth:`inspect` says beside costs several times that.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        return read_verdicts(self._report(queue_name, "verdicts"))

    def _report(self, queue_name: str, mode: str, only_id: bytes = b"") -> Iterator[bytes]:
        keys, offset, anchor = QueueKeys(queue_name, self.prefix), 0, b""
        while offset >= 0:
            reply = self._call(keys, "", "", 0, offset, anchor, mode, b"", only_id=only_id)
            offset, anchor = reply.next_offset, reply.next_anchor
            yield from reply.reports

    def _sweep_in_batches(self, keys: QueueKeys, *, interval: int | str, may_be_held: bool) -> StalledCheck:
        # With the process: a checker that is made before a fork is one sweeper in each of them.
        sweep_id = f"{self._sweeper_id}.{os.getpid()}/{next(self._sweeps)}"
        replies: list[StalledReply] = []
        remaining: int | bytes = b""
        offset, anchor = 0, b""
        while offset >= 0:
            call = keys, interval, sweep_id, len(replies), offset, anchor, "", remaining, may_be_held
            try:
                reply = self._call(*call)
            except (redis.ConnectionError, redis.TimeoutError):
                reply = self._call(*call)  # its reply may have been lost on the way: the script counts it once
            replies.append(reply)
            offset, anchor, remaining = reply.next_offset, reply.next_anchor, reply.remaining
        check = check_from(keys.queue_name, replies)
        if check.recovered or check.failed or check.marked or check.dropped or remaining:
            with contextlib.suppress(*REDIS_ERRORS):  # it ends by itself, and what was done is to be told
                self.client.unlink(id_to_bytes(keys.sweep_record(sweep_id)))
        return check

    def _call(
        self,
        keys: QueueKeys,
        interval: int | str,
        sweep_id: str,
        step: int,
        offset: int,
        anchor: bytes,
        mode: str,
        remaining: int | bytes,
        may_be_held: bool = False,
        only_id: bytes = b"",
    ) -> StalledReply:
        move_stalled_jobs_to_wait = scripts.load("moveStalledJobsToWait-8.lua")
        reply = move_stalled_jobs_to_wait(
            self.client,
            [
                keys.stalled,
                keys.wait,
                keys.active,
                keys.failed,
                keys.stalled_check,
                keys.meta,
                keys.paused,
                keys.marker,
            ],
            [
                keys.base,
                self.max_stalled_count,
                scripts.TIME,
                interval,
                sweep_id,
                self.batch_size,
                step,
                offset,
                anchor,
                mode,
                "" if self.dead_message_ttl is None else self.dead_message_ttl,
                remaining,
                self.max_recovered_share if may_be_held and self.max_recovered_share else "",
                self.stalled_interval,
                only_id,
            ],
            only_reads=mode != "",
        )
        return StalledReply(*reply)
