from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dramatiq import Broker, Worker
from dramatiq.middleware.prometheus import DB_PATH

from .signals import StalledSignals

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge

#: Where the processes of one machine keep what they export, in a file each.
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class StalledMetrics(StalledSignals):
    """Middleware that exports what the checks of stalled jobs did, beside the
    metrics of Dramatiq's own Prometheus middleware and by its server.  Needs
    the extra ``prometheus``.

    * ``dramatiq_echomq_stalled_checks_total``
    * ``dramatiq_echomq_stalled_recovered_total``
    * ``dramatiq_echomq_stalled_failed_total``
    * ``dramatiq_echomq_crashes_seen_total``: worker processes that were killed.
    * ``dramatiq_echomq_stalled_reported``: how many jobs the last report
      named, where checks only report; ``would`` is ``recover`` or ``fail``.
    * ``dramatiq_echomq_lock_smallest_ttl_milliseconds``: the least that was
      left of a lock at the last renewal.  It nears zero before jobs are lost,
      and is the whole lock duration without any job.

    All but the last one carry the label ``queue_name``.

    Raises:
      ImportError: When the package ``prometheus-client`` is missing.
    """

    def __init__(self) -> None:
        if find_spec("prometheus_client") is None:
            raise ImportError('StalledMetrics needs a package: pip install "dramatiq-echomq[prometheus]"')

    def after_process_boot(self, broker: Broker) -> None:
        # Dramatiq's middleware sets the same, perhaps later than the first import of the client.
        os.environ.setdefault(DIRECTORY_VARIABLE, DB_PATH)
        forget_dead_processes(Path(os.environ[DIRECTORY_VARIABLE]))

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        if DIRECTORY_VARIABLE in os.environ:
            forget_process(os.getpid(), Path(os.environ[DIRECTORY_VARIABLE]))

    def after_stalled_check(self, broker: Broker, queue_name: str, *, recovered: int, failed: int) -> None:
        self._checks.labels(queue_name).inc()
        self._recovered.labels(queue_name).inc(recovered)
        self._failed.labels(queue_name).inc(failed)

    def after_crash_seen(self, broker: Broker, queue_name: str, worker: str, job_ids: Sequence[str]) -> None:
        self._crashes.labels(queue_name).inc()

    def after_stalled_report(
        self, broker: Broker, queue_name: str, *, would_recover: Sequence[str], would_fail: Sequence[str]
    ) -> None:
        self._reported.labels(queue_name, "recover").set(len(would_recover))
        self._reported.labels(queue_name, "fail").set(len(would_fail))

    def after_locks_renewed(self, broker: Broker, *, smallest_ttl: int) -> None:
        self._smallest_ttl.set(smallest_ttl)

    # The client of Prometheus is imported when the first metric is used: by then it is known
    # where processes keep them. A gauge is made when it is set, since a new one reads 0.

    @cached_property
    def registry(self) -> CollectorRegistry:
        """What the metrics of this process are registered with."""
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()

    @cached_property
    def _checks(self) -> Counter:
        return self._counter("stalled_checks", "Checks for stalled jobs.")

    @cached_property
    def _recovered(self) -> Counter:
        return self._counter("stalled_recovered", "Stalled jobs that went back to wait.")

    @cached_property
    def _failed(self) -> Counter:
        return self._counter("stalled_failed", "Jobs that had stalled too often and were failed.")

    @cached_property
    def _crashes(self) -> Counter:
        return self._counter("crashes_seen", "Worker processes that were killed.")

    @cached_property
    def _reported(self) -> Gauge:
        from prometheus_client import Gauge

        return Gauge(
            "dramatiq_echomq_stalled_reported",
            "Jobs that the last report-only check would have recovered or failed.",
            ["queue_name", "would"],
            registry=self.registry,
            multiprocess_mode="livemax",
        )

    @cached_property
    def _smallest_ttl(self) -> Gauge:
        from prometheus_client import Gauge

        return Gauge(
            "dramatiq_echomq_lock_smallest_ttl_milliseconds",
            "The least that was left of a lock when it was renewed.",
            registry=self.registry,
            multiprocess_mode="livemin",
        )

    def _counter(self, name: str, text: str) -> Counter:
        from prometheus_client import Counter

        return Counter(f"dramatiq_echomq_{name}", text, ["queue_name"], registry=self.registry)


def forget_dead_processes(directory: Path) -> None:
    """Remove what processes that are gone had to say about themselves: one
    that was killed could not do it, and its gauges would be shown for ever.
    """
    if sys.platform == "win32":  # where there is no way to ask that does no harm
        return
    for file in directory.glob("gauge_live*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            forget_process(int(pid), directory)


def forget_process(pid: int, directory: Path) -> None:
    """Remove what a process had to say about itself."""
    from prometheus_client import multiprocess

    with contextlib.suppress(FileNotFoundError):  # another worker boots and does the same
        multiprocess.mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
