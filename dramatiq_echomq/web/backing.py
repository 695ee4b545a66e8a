from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from flask import Flask, current_app

from ..inspection.history import QueueHistory
from ..inspection.inspector import QueueInspector
from ..protocol.records import ActiveJob
from ..recovery.checker import StalledChecker
from ..settings import Settings

#: For how many seconds the names of all queues are known, and for how many times longer than it took to find them.
NAMES_KNOWN_FOR = 3.0
NAMES_KNOWN_FOR_TIMES = 20

#: For how many seconds it is known what a queue has done lately, where many are shown.
HISTORY_KNOWN_FOR = 10.0
MOST_HISTORIES = 1_000

_KEY = "dramatiq_echomq"


class Backing:
    """What the pages show and do, behind them.

    Parameters:
      client(redis.Redis)
      settings(Settings)
      actions(bool): Whether the pages may change anything.
      trusted_hosts(Sequence[str]): The names that they may be asked for by; None for any.
    """

    def __init__(
        self, client: Any, settings: Settings, *, actions: bool, trusted_hosts: Sequence[str] | None = None
    ) -> None:
        self.settings = settings
        self.actions = actions
        self.trusted_hosts = None if trusted_hosts is None else list(trusted_hosts)
        self.inspector = QueueInspector(client, prefix=settings.prefix)
        self.checker = StalledChecker(
            client,
            prefix=settings.prefix,
            max_stalled_count=settings.max_stalled_count,
            batch_size=settings.batch_size,
        )
        self._names: list[str] = []
        self._names_until = float("-inf")
        self._finding_names = threading.Lock()
        self._histories: dict[str, tuple[float, QueueHistory]] = {}

    def queue_names(self) -> list[str]:
        """Return the names of all queues.  To find them, Redis goes through
        all of its keys: however many look at a page, that is done now and then.
        """
        with self._finding_names:
            started = time.monotonic()
            if started >= self._names_until:
                self._names = self.inspector.queue_names()
                now = time.monotonic()
                self._names_until = now + max(NAMES_KNOWN_FOR, NAMES_KNOWN_FOR_TIMES * (now - started))
            return self._names

    def history(self, queue_name: str) -> QueueHistory:
        """Return what a queue has done lately, or had a few seconds ago."""
        now = time.monotonic()
        until, known = self._histories.get(queue_name, (now, None))
        if known is not None and now < until:
            return known
        history = self.inspector.history(queue_name)
        if len(self._histories) > MOST_HISTORIES:
            self._histories = {}
        self._histories[queue_name] = now + HISTORY_KNOWN_FOR, history
        return history

    def verdict(self, queue_name: str, job_id: str) -> ActiveJob | None:
        """Return what the next check would do to an active job."""
        return self.checker.inspect_job(queue_name, job_id)


def hold(app: Flask, backing: Backing) -> None:
    """Let the pages of an application have what is behind them."""
    app.extensions[_KEY] = backing


def backing() -> Backing:
    """Return what is behind the page that is asked for."""
    found: Backing = current_app.extensions[_KEY]
    return found
