"""Where each id of a queue is, read in bounded steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ...protocol.job_info import STATES
from ...protocol.job_pages import ids_in
from ...protocol.keys import QueueKeys, id_to_bytes

#: How many keys or marks one call reads, and after how many ids the progress is told.
STEP = 1_000

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
            for number, job_id in enumerate(ids_in(self.client, self.keys, state), 1):
                self.places.setdefault(job_id, []).append(state)
                if number % STEP == 0:
                    self.progress(state, number)
        self.marks = list(self._scan("SSCAN", self.keys.stalled))

    def _read_keys(self) -> None:
        base = id_to_bytes(self.keys.base)
        pattern = re.sub(rb"([\\*?\[\]])", rb"\\\1", base) + b"*"
        for number, key in enumerate(self._all_keys(pattern), 1):
            name = key[len(base) :]
            if name.endswith(b":lock"):
                self.locks.append(name[: -len(b":lock")])
            elif not name.endswith(COMPANIONS):
                self.jobs.append(name)
            if number % STEP == 0:
                self.progress("keys", number)
        # A queue may be called `<this one>:more`. Its keys are none of this one.
        others = tuple(name.removesuffix(b"meta") for name in self.jobs if name.endswith(b":meta"))
        self.jobs = [name for name in self.jobs if not name.startswith(others)]
        self.locks = [name for name in self.locks if not name.startswith(others)]

    def _all_keys(self, pattern: bytes) -> Iterator[bytes]:
        for key in self.client.scan_iter(match=pattern, count=STEP):
            yield id_to_bytes(key)

    def _scan(self, command: str, key: str) -> Iterator[bytes]:
        cursor: Any = 0
        while True:
            cursor, found = self.client.execute_command(
                command, id_to_bytes(key), cursor, "COUNT", STEP, NEVER_DECODE=True
            )
            yield from found
            if int(cursor) == 0:
                return
