from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable
from logging import Logger
from typing import Any

from dramatiq.logging import get_logger

from ..errors import QueueRefused
from ..protocol.keys import QueueKeys, id_to_text
from ..protocol.msgpack import msgpack_list
from ..protocol.scripts import load
from .in_flight import InFlightJob
from .in_flight_jobs import InFlightJobs
from .lock_timer import LockTimer
from .renewal_clients import ROUNDS_PER_LOCK, RenewalClients, renewal_timeout
from .renewal_faults import RenewalFaults


class LockManager:
    """Renews the locks of all jobs that this process holds.

    Parameters:
      make_client(Callable): Makes a client with a socket timeout in seconds.
      in_flight(InFlightJobs): The jobs.
      keys_of(Callable): Gives the keys of a queue by its name.
      lock_duration(int): How many ms a lock lasts where a job does not say so.
      report(Callable): Called after a round of renewals with the smallest TTL
        in ms that it found.
      tell_lost(Callable): Called for each job that is given up.
    """

    def __init__(
        self,
        make_client: Callable[[float], Any],
        in_flight: InFlightJobs,
        *,
        keys_of: Callable[[str], QueueKeys],
        lock_duration: int,
        report: Callable[[int], None],
        tell_lost: Callable[[InFlightJob], None],
    ) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.clients: RenewalClients = RenewalClients(make_client, lock_duration)
        self.in_flight = in_flight
        self.keys_of = keys_of
        self.lock_duration = lock_duration
        self.report = report
        self.tell_lost = tell_lost
        self.faults: RenewalFaults = RenewalFaults()
        self._timer: LockTimer | None = None

    def start(self) -> None:
        """Start to renew."""
        if self._timer is None:
            self._timer = LockTimer(self, self.in_flight.hurry)
            self._timer.start()

    def stop(self) -> None:
        """Let go of everything: what is still held ends with its lock."""
        timer, self._timer = self._timer, None
        if timer is not None:
            self.in_flight.clear()
            timer.stop()

    @property
    def is_failing(self) -> bool:
        """Whether the last renewals of all queues failed."""
        return self.faults.is_failing

    @property
    def is_cut_off(self) -> bool:
        """Whether renewals have failed for so long that no lock can be left."""
        return self.faults.failing_for > self.lock_duration / 1000

    @property
    def timeout(self) -> float:
        """How many seconds a round may take: it follows the shortest lock that is held."""
        return renewal_timeout(min([self.lock_duration, *(each.fetched.lock_duration for each in self._held())]))

    def seconds_per_round(self) -> float:
        durations = [each.fetched.lock_duration for each in self._held()]
        return min([self.lock_duration, *durations]) / 1000 / ROUNDS_PER_LOCK

    def next_expiry(self) -> float:
        """Return the monotonic time at which the next lock ends unless it is renewed."""
        now = time.monotonic()
        return min((expiry for each in self._held() if (expiry := _expiry(each)) > now), default=math.inf)

    def renew_if_overdue(self, job: InFlightJob) -> bool:
        """Make sure of a job whose lock was not renewed in time: its owner may
        come back as long as nobody recovered the job.

        Returns:
          bool: Whether the lock was renewed.
        """
        if job.has_ended or not job.needs_renewal:
            return False
        return self.win_back(job)

    def win_back(self, job: InFlightJob) -> bool:
        """Renew the lock of a job that Redis said is not this process's: the
        lock may have ended, and nobody may have recovered the job.

        Returns:
          bool: Whether the lock was renewed.
        """
        if job.has_ended:
            return False
        asked_at = time.monotonic()
        self.renew_group(job.queue_name, job.fetched.lock_duration, [job], self.clients.with_timeout(self.timeout))
        return job.renewed_at >= asked_at

    def renew(self) -> None:
        """Renew every lock once, those that end first before the others.  When
        the time of a round is up, the rest comes first in the next one.
        """
        self._forget_orphans()
        started, timeout = time.monotonic(), self.timeout
        client = self.clients.with_timeout(timeout)
        smallest_ttls: dict[str, int] = {}
        errors: dict[str, Exception] = {}
        for (queue_name, duration), group in self.groups():
            if time.monotonic() - started > timeout:
                break
            try:
                ttl = self.renew_group(queue_name, duration, group, client)
                smallest_ttls[queue_name] = min(ttl, smallest_ttls.get(queue_name, ttl))
            except Exception as error:
                errors[queue_name] = error
        if not smallest_ttls and not errors and self.is_failing:
            errors = self._errors_of_ping()
        self.faults.note_round(errors, renewed=smallest_ttls.keys() - errors.keys())
        for failed in [None] if self.is_failing else [*errors]:
            self.give_up_overdue(failed)
        if smallest_ttls:
            self.report(min(smallest_ttls.values()))

    def groups(self) -> list[tuple[tuple[str, int], list[InFlightJob]]]:
        """Return the jobs by queue and lock duration, which one call can renew, in
        the order in which to do so.  A queue in trouble comes last: it may hold
        up the round.
        """
        groups: defaultdict[tuple[str, int], list[InFlightJob]] = defaultdict(list)
        for job in self._held():
            if not job.is_stuck:
                groups[job.queue_name, job.fetched.lock_duration].append(job)
        return sorted(groups.items(), key=lambda each: (each[0][0] in self.faults.queues, min(map(_expiry, each[1]))))

    def renew_group(self, queue_name: str, lock_duration: int, group: list[InFlightJob], client: Any) -> int:
        """Renew the locks of jobs of one queue in one call, and note which are lost.

        Returns:
          int: The smallest TTL in ms that was found.

        Raises:
          QueueRefused: When some of the locks were refused.
          redis.RedisError: When Redis cannot be used.
        """
        keys, now = self.keys_of(queue_name), time.monotonic()
        jobs = [job.fetched for job in group]
        lost_tokens, smallest_ttl, refused_tokens, reason = load("extendLocks-1.lua")(
            client,
            [keys.stalled],
            [
                keys.base,
                msgpack_list([job.token for job in jobs]),
                msgpack_list([job.job_id for job in jobs]),
                lock_duration,
                msgpack_list([job.started for job in jobs]),
            ],
        )
        for held in group:
            if held.fetched.token in lost_tokens:
                self._lose(held)
            elif held.fetched.token not in refused_tokens:
                held.renewed(now)
        if 0 <= smallest_ttl < lock_duration / 2 and not all(held.was_renewed_late for held in group):
            for held in group:
                held.was_renewed_late = True
            self.logger.warning(
                "A lock of queue %r had %d of its %d ms left when it was renewed: this process or Redis was blocked.",
                queue_name,
                smallest_ttl,
                lock_duration,
            )
        if refused_tokens:
            raise QueueRefused(f"{len(refused_tokens)} locks: {id_to_text(reason)}")
        return int(smallest_ttl) if smallest_ttl >= 0 else lock_duration

    def note_silence(self, since: float) -> None:
        """Note that a round has had no end since then, in monotonic time."""
        self.faults.note_silence(since, self.timeout)
        self.give_up_overdue()

    def give_up_overdue(self, queue_name: str | None = None) -> None:
        """Give up the jobs, of one queue or of all, whose locks must have ended."""
        for job in self._held():
            if job.is_overdue and queue_name in (None, job.queue_name):
                self._lose(job)

    def _held(self) -> list[InFlightJob]:
        return self.in_flight.all()

    def _forget_orphans(self) -> None:
        for job in self._held():
            if job.is_orphaned:
                self.logger.warning("The thread of job %s died. Its lock ends.", job.label)
                job.end()

    def _errors_of_ping(self) -> dict[str, Exception]:
        try:
            self.clients.usual.ping()
        except Exception as error:
            return {"": error}
        return {}

    def _lose(self, job: InFlightJob) -> None:
        if job.lose():
            self.logger.warning(
                "Lost the lock of job %s of queue %r: this process was blocked or cut off for too long. %s",
                job.label,
                job.queue_name,
                "Its actor is interrupted." if job.runner else "It is not run here.",
            )
            self.tell_lost(job)


def _expiry(job: InFlightJob) -> float:
    return job.renewed_at + job.fetched.lock_duration / 1000
