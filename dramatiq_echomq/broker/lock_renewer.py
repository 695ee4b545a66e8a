from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from dramatiq.logging import get_logger

from ..errors import QueueRefused
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys, id_to_text
from ..protocol.scripts import load
from .in_flight import Holding, Holdings
from .jobs import JobMessage

#: How many rounds of renewals a lock lasts.
ROUNDS_PER_LOCK = 4

#: The shortest time between two rounds, in seconds.
SHORTEST_ROUND = 0.01

#: The errors that a renewal may meet.
RENEWAL_ERRORS = (*REDIS_ERRORS, QueueRefused)


class LockManager:
    """Renews the locks of all jobs that this process holds, on one thread.

    Parameters:
      client(redis.Redis): A client with few retries and a socket timeout well
        below the lock duration.
      holdings(Holdings): The jobs.
      keys_of(Callable): Gives the keys of a queue by its name.
      lock_duration(int): How many ms a lock lasts where a job does not say so.
      report(Callable): Called after a round of renewals with the smallest TTL
        in ms that it found.
    """

    def __init__(
        self,
        client: Any,
        holdings: Holdings,
        *,
        keys_of: Callable[[str], QueueKeys],
        lock_duration: int,
        report: Callable[[int], None],
    ) -> None:
        self.logger = get_logger(__name__, type(self))
        self.client = client
        self.holdings = holdings
        self.keys_of = keys_of
        self.lock_duration = lock_duration
        self.report = report
        self._failing_since: float | None = None
        self._stopping = threading.Event()  # one for each thread: the last one may still wait for Redis
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to renew."""
        if self._thread is None:
            self._stopping = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=[self._stopping], name="dramatiq-echomq-locks", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Let go of everything: what is still held ends with its lock."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopping.set()
            self.holdings.hurry.set()
            self.holdings.clear()
            thread.join(timeout=5)

    @property
    def is_cut_off(self) -> bool:
        """Whether renewals have failed for so long that no lock can be left."""
        since = self._failing_since
        return since is not None and time.monotonic() - since > self.lock_duration / 1000

    def renew_if_overdue(self, message: JobMessage) -> bool:
        """Make sure of a job whose lock was not renewed in time: its owner may
        come back as long as nobody recovered the job.

        Returns:
          bool: Whether the lock was renewed.
        """
        holding = self.holdings.find(message)
        if holding is None or not (holding.is_overdue or holding.is_doubtful):
            return False
        self._renew_group(message.queue_name, message.job.lock_duration, [holding])
        return not (holding.is_overdue or holding.is_doubtful)

    def renew(self) -> None:
        """Renew every lock once."""
        for holding in self.holdings.all():
            if holding.is_orphaned:
                job_id = id_to_text(holding.message.job.job_id)
                self.logger.warning("The thread of job %r died. Its lock ends.", job_id)
                self.holdings.forget(holding.message)
        groups = self.holdings.by_queue_and_duration()
        try:
            if not groups and self._failing_since is not None:
                self.client.ping()
            smallest_ttls = [self._renew_group(*key, group) for key, group in groups.items()]
        except RENEWAL_ERRORS as error:
            self._failed(error)
        else:
            self._succeeded()
            self.report(min(smallest_ttls, default=self.lock_duration))

    def _run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            started = time.monotonic()
            try:
                self.renew()
            except Exception:
                self.logger.exception("A round of renewals failed. It is tried again.")
            while not stopping.is_set() and (left := started + self._seconds_per_round() - time.monotonic()) > 0:
                self.holdings.hurry.wait(left)
                self.holdings.hurry.clear()

    def _seconds_per_round(self) -> float:
        durations = [holding.message.job.lock_duration for holding in self.holdings.all()]
        return max(min([self.lock_duration, *durations]) / 1000 / ROUNDS_PER_LOCK, SHORTEST_ROUND)

    def _renew_group(self, queue_name: str, lock_duration: int, group: list[Holding]) -> int:
        keys, now = self.keys_of(queue_name), time.monotonic()
        jobs = [holding.message.job for holding in group]
        lost_tokens, smallest_ttl = load("extendLocks-1.lua")(
            self.client,
            [keys.stalled],
            [
                keys.base,
                msgpack_list([job.token for job in jobs]),
                msgpack_list([job.job_id for job in jobs]),
                lock_duration,
                msgpack_list([job.started for job in jobs]),
            ],
        )
        for holding in group:
            if holding.message.job.token in lost_tokens:
                self._lose(holding)
            else:
                holding.renewed_at, holding.is_doubtful = now, False
        if 0 <= smallest_ttl < lock_duration / 2:
            self.logger.warning(
                "A lock of queue %r had %d of its %d ms left when it was renewed: this process or Redis was blocked.",
                queue_name,
                smallest_ttl,
                lock_duration,
            )
        return int(smallest_ttl) if smallest_ttl >= 0 else lock_duration

    def _succeeded(self) -> None:
        if self._failing_since is not None:
            self._failing_since = None
            self.logger.info("Locks are renewed again.")

    def _failed(self, error: Exception) -> None:
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            self.logger.warning("Locks cannot be renewed for now: %s: %s", type(error).__name__, error)
        for holding in self.holdings.all():
            if holding.is_overdue:
                self._lose(holding)

    def _lose(self, holding: Holding) -> None:
        if self.holdings.lose(holding):
            self.logger.warning(
                "Lost the lock of job %r of queue %r: this process was blocked or cut off for too long. %s",
                id_to_text(holding.message.job.job_id),
                holding.message.queue_name,
                "Its actor is interrupted." if holding.runner else "It is not run here.",
            )


def msgpack_list(texts: list[bytes]) -> bytes:
    """Encode a list of texts as msgpack (array 32 of str 32)."""
    return b"\xdd" + struct.pack(">I", len(texts)) + b"".join(b"\xdb" + struct.pack(">I", len(t)) + t for t in texts)
