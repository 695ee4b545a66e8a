"""Where each id of a queue is, read in bounded steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ...protocol.job_info import STATES
from ...protocol.keys import QueueKeys

#: How many ids or keys one call reads.
STEP = 1_000

LISTS = ("wait", "paused", "active")

#: What stands behind a job's id in the names of keys that belong to it.
COMPANIONS = (b":lock", b":logs", b":dependencies", b":processed", b":failed", b":unsuccessful")

Progress = Callable[[str, int], None]


class Census:
    """The ids of a queue as they were while they were read.  Jobs move on
    meanwhile, so whatever looks wrong is to be looked at again.

    Parameters:
      client(redis.Redis)
      keys(QueueKeys)
      progress(Callable): Called with what is read and how many were.
    """

    def __init__(self, client: Any, keys: QueueKeys, progress: Progress) -> None:
        self.client = client
        self.keys = keys
        self.progress = progress
        self.places: dict[bytes, list[str]] = {}
        self.marks: list[bytes] = []
        self.locks: list[bytes] = []
        self.jobs: list[bytes] = []

    def take(self) -> None:
        """Read all ids and the names of all keys of the queue.  The keys come
        first: a job that is added meanwhile has a place then.
        """
        self._read_keys()
        for state in STATES:
            for job_id in self._ids(state):
                self.places.setdefault(job_id, []).append(state)
        self.marks = list(self._scan("SSCAN", self.keys.stalled))

    def _read_keys(self) -> None:
        base = self.keys.base.encode()
        pattern = re.sub(rb"([\\*?\[\]])", rb"\\\1", base) + b"*"
        for number, key in enumerate(self._all_keys(pattern), 1):
            name = key[len(base) :]
            if name.endswith(b":lock"):
                self.locks.append(name[: -len(b":lock")])
            elif not name.endswith(COMPANIONS):
                self.jobs.append(name)
            if number % STEP == 0:
                self.progress("keys", number)

    def _all_keys(self, pattern: bytes) -> Iterator[bytes]:
        for key in self.client.scan_iter(match=pattern, count=STEP):
            yield key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")

    def _ids(self, state: str) -> Iterator[bytes]:
        """Read from the end at which ids are added: those that leave meanwhile hide no other."""
        key, offset = self.keys.base + state, 0
        while True:
            bounds = (offset, offset + STEP - 1)
            command = ("LRANGE", key, *bounds) if state in LISTS else ("ZREVRANGE", key, *bounds)
            ids = self.client.execute_command(*command, NEVER_DECODE=True)
            yield from ids
            offset += len(ids)
            self.progress(state, offset)
            if len(ids) < STEP:
                return

    def _scan(self, command: str, key: str) -> Iterator[bytes]:
        cursor: Any = 0
        while True:
            cursor, found = self.client.execute_command(command, key, cursor, "COUNT", STEP, NEVER_DECODE=True)
            yield from found
            if int(cursor) == 0:
                return
