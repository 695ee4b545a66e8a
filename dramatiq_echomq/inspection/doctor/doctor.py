from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...errors import QueueRefused, ServerTooOld
from ...protocol import scripts
from ...protocol.keys import QueueKeys, id_to_bytes
from ...settings import Settings
from ..actions import act, batch_size_for, set_paused
from ..inspector import QueueInspector
from ..records import ActionResult
from ..words import duration
from .census import Progress
from .findings import Finding
from .jobs import examine_jobs
from .server import examine_server

#: The TTL that a throttle without one gets, in ms.
THROTTLE_TTL = 30_000


class QueueDoctor:
    """Finds what is wrong with a queue and its server, and repairs what can be
    repaired without losing a job.  A look writes nothing; a repair looks again
    at each job before it changes anything.

    Parameters:
      client(redis.Redis)
      prefix(str)
    """

    def __init__(self, client: Any, *, prefix: str = Settings.prefix) -> None:
        self.client = client
        self.inspector = QueueInspector(client, prefix=prefix)

    def examine(self, queue_name: str, progress: Progress | None = None) -> list[Finding]:
        """Find what is wrong with a queue and its server.  All keys of the database are looked at, in
        bounded steps.

        Parameters:
          queue_name(str)
          progress(Callable): Called with what is looked at and how many were.

        Raises:
          QueueNotFound: When there is no such queue.
          redis.RedisError: When Redis cannot be used.
        """
        return [*self.examine_server(), *self.examine_queue(queue_name, progress)]

    def examine_server(self) -> list[Finding]:
        """Find what is wrong with the server alone."""
        return list(examine_server(self.client))

    def examine_queue(self, queue_name: str, progress: Progress | None = None) -> list[Finding]:
        """Find what is wrong with a queue alone.  See :meth:`examine`."""
        return list(self._examine_queue(queue_name, progress or _ignore))

    def repair(self, queue_name: str, finding: Finding, progress: Callable[[int], None] | None = None) -> ActionResult:
        """Write: repair what was found, as far as it still is so.

        Parameters:
          queue_name(str)
          finding(Finding)
          progress(Callable): Called with how many jobs are through.
        """
        keys = self._keys(queue_name)
        if finding.kind == "throttle":
            if self._lacks_ttl(keys):
                self.client.pexpire(id_to_bytes(keys.stalled_check), THROTTLE_TTL)
        elif finding.kind == "paused-left":
            if not self.inspector.is_paused(queue_name):
                set_paused(self.client, keys, False)
        elif finding.is_repairable:
            size = batch_size_for(self.inspector.queue(queue_name).counts)
            return act(finding.job_ids, lambda ids: self._repair(keys, finding.kind, ids), progress, batch_size=size)
        return ActionResult((), {})

    def _examine_queue(self, queue_name: str, progress: Progress) -> Iterator[Finding]:
        keys = self._keys(queue_name)
        try:
            info = self.inspector.queue(queue_name)
            for finding in examine_jobs(self.client, keys, progress, is_checked=info.next_check is not None):
                if finding.kind != "unchecked" or self.inspector.queue(queue_name).next_check is None:
                    yield finding
        except QueueRefused as error:
            yield Finding("refused", str(error))
            return
        except ServerTooOld:  # which was found already
            return
        if self._lacks_ttl(keys):
            yield Finding("throttle")
        if info.counts.paused and not info.paused:
            yield Finding("paused-left", f"{info.counts.paused:,} of them")
        if info.lacks_workers:
            due = "" if info.overdue_for is None else f", a delayed one due for {duration(info.overdue_for)}"
            yield Finding("no-worker", f"{info.counts.waiting:,} waiting, {info.counts.active:,} active{due}")

    def _repair(self, keys: QueueKeys, kind: str, ids: list[bytes]) -> list[str]:
        args = [keys.base, scripts.TIME, kind, *ids]
        outcomes = scripts.load("repairJobs-1.lua")(self.client, [keys.meta], args)
        return [outcome.decode() for outcome in outcomes]

    def _lacks_ttl(self, keys: QueueKeys) -> bool:
        return bool(self.client.pttl(id_to_bytes(keys.stalled_check)) == -1)

    def _keys(self, queue_name: str) -> QueueKeys:
        return QueueKeys(queue_name, self.inspector.prefix)


def _ignore(_: str, __: int) -> None:
    """Tell nobody how far it is."""
