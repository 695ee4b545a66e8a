from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dramatiq import Broker, Worker
from dramatiq.middleware.prometheus import DB_PATH

from ..protocol.records import StalledCheck
from ..signals import StalledSignals
from .processes import DIRECTORY_VARIABLE, forget_dead_processes, forget_process, require_prometheus_client

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

#: What all names begin with.
NAMESPACE = "dramatiq_echomq"

#: What is counted of each queue, from its first check on: the increase of a
#: counter that begins with 1 is not seen.
COUNTERS = {
    "stalled_checks": "Checks for stalled jobs.",
    "stalled_check_errors": "Checks that could not be made.",
    "stalled_recovered": "Stalled jobs that went back to wait.",
    "stalled_failed": "Jobs that had stalled too often and were failed.",
    "stalled_holds": "Times that checks were held, since they would have recovered too many jobs at once.",
    "stalled_reports": "Checks that only reported what they would do.",
    "crashes_seen": "Worker processes that were killed.",
    "locks_lost": "Jobs that were given up since their lock was lost.",
}

#: The upper bounds in seconds of what checks take, of how late recovered jobs
#: are, and of what is left of a lock.
BUCKETS_OF_CHECKS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BUCKETS_OF_RECOVERY = (1, 2.5, 5, 10, 15, 30, 45, 60, 90, 120, 300, 600, 1_800, 3_600, 21_600, 86_400)
BUCKETS_OF_LOCKS = (0.1, 0.5, 1, 2.5, 5, 7.5, 10, 15, 20, 25, 30, 60, 300)


class StalledMetrics(StalledSignals):
    """Middleware that exports what the checks of stalled jobs did, beside the
    metrics of Dramatiq's own Prometheus middleware and by its server.  Needs
    the extra ``prometheus``.

    Counters:

    * ``dramatiq_echomq_stalled_checks_total``
    * ``dramatiq_echomq_stalled_check_errors_total``: checks and reports that
      could not be made.
    * ``dramatiq_echomq_stalled_recovered_total``
    * ``dramatiq_echomq_stalled_failed_total``
    * ``dramatiq_echomq_stalled_holds_total``: times that a check was held by
      ``max_recovered_share``.
    * ``dramatiq_echomq_stalled_reports_total``: where checks only report, this
      is counted, and the three that say what was done are not.
    * ``dramatiq_echomq_crashes_seen_total``: worker processes that were killed.
    * ``dramatiq_echomq_locks_lost_total``: jobs that a worker gave up, since
      it was frozen or cut off.

    Histograms:

    * ``dramatiq_echomq_stalled_check_duration_seconds``: of checks and reports.
    * ``dramatiq_echomq_stalled_recovery_seconds``: from when the lost worker
      had fetched a job until it went back to wait.  Redis does not keep when a
      worker died or a lock ended, so the time that the job ran is in it: a job
      was without a worker for at most this long.  Jobs of other runtimes that
      do not say when they were fetched are not in it.
    * ``dramatiq_echomq_lock_margin_seconds``: the least that was left of a
      lock when the locks of a process were renewed.

    Gauges:

    * ``dramatiq_echomq_stalled_reported``: how many jobs the last report
      named, where checks only report; ``would`` is ``recover`` or ``fail``.
    * ``dramatiq_echomq_lock_smallest_ttl_milliseconds``: the least that was
      left of a lock at the last renewal.  It nears zero before jobs are lost,
      and is the whole lock duration without any job.

    All but those of the lock's margin carry the label ``queue_name``.  How the
    queues themselves are is exported by :class:`.QueueCollector`.

    Raises:
      ImportError: When the package ``prometheus-client`` is missing.
    """

    def __init__(self) -> None:
        require_prometheus_client(type(self).__name__)
        self._counters: dict[str, Counter] = {}
        self._mutex = threading.Lock()

    def after_process_boot(self, broker: Broker) -> None:
        # Dramatiq's middleware sets the same, perhaps later than the first import of the client.
        os.environ.setdefault(DIRECTORY_VARIABLE, DB_PATH)
        forget_dead_processes(Path(os.environ[DIRECTORY_VARIABLE]))

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        if DIRECTORY_VARIABLE in os.environ:
            forget_process(os.getpid(), Path(os.environ[DIRECTORY_VARIABLE]))

    def after_stalled_sweep(
        self, broker: Broker, queue_name: str, *, seconds: float, check: StalledCheck | None, error: Exception | None
    ) -> None:
        for name in COUNTERS:
            self._count(name, queue_name, 0)
        self._check_duration.labels(queue_name).observe(seconds)
        if check is None:
            self._count("stalled_check_errors", queue_name)
            return
        for age in check.recovered_ages:
            if age is not None:
                self._recovery.labels(queue_name).observe(age / 1000)

    def after_stalled_check(self, broker: Broker, queue_name: str, *, recovered: int, failed: int) -> None:
        self._count("stalled_checks", queue_name)
        self._count("stalled_recovered", queue_name, recovered)
        self._count("stalled_failed", queue_name, failed)

    def after_stalled_report(
        self, broker: Broker, queue_name: str, *, would_recover: Sequence[str], would_fail: Sequence[str]
    ) -> None:
        self._count("stalled_reports", queue_name)
        self._reported.labels(queue_name, "recover").set(len(would_recover))
        self._reported.labels(queue_name, "fail").set(len(would_fail))

    def after_stalled_hold(self, broker: Broker, queue_name: str, *, would_recover: int, active: int) -> None:
        self._count("stalled_holds", queue_name)

    def after_crash_seen(self, broker: Broker, queue_name: str, worker: str, job_ids: Sequence[str]) -> None:
        self._count("crashes_seen", queue_name)

    def after_lock_lost(self, broker: Broker, queue_name: str, job_id: str) -> None:
        self._count("locks_lost", queue_name)

    def after_locks_renewed(self, broker: Broker, *, smallest_ttl: int) -> None:
        self._smallest_ttl.set(smallest_ttl)
        self._lock_margin.observe(smallest_ttl / 1000)

    # The client of Prometheus is imported when the first metric is used: by then it is known
    # where processes keep them. A gauge is made when it is set, since a new one reads 0.

    @cached_property
    def registry(self) -> CollectorRegistry:
        """Return what the metrics of this process are registered with."""
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()

    def _count(self, name: str, queue_name: str, amount: int = 1) -> None:
        from prometheus_client import Counter

        with self._mutex:  # locks are lost on other threads than checks are made on
            if name not in self._counters:
                self._counters[name] = Counter(
                    f"{NAMESPACE}_{name}", COUNTERS[name], ["queue_name"], registry=self.registry
                )
        self._counters[name].labels(queue_name).inc(amount)

    @cached_property
    def _check_duration(self) -> Histogram:
        text = "How long checks for stalled jobs took."
        return self._histogram("stalled_check_duration_seconds", text, BUCKETS_OF_CHECKS, ["queue_name"])

    @cached_property
    def _recovery(self) -> Histogram:
        text = "From when the lost worker had fetched a job until it went back to wait."
        return self._histogram("stalled_recovery_seconds", text, BUCKETS_OF_RECOVERY, ["queue_name"])

    @cached_property
    def _lock_margin(self) -> Histogram:
        text = "The least that was left of a lock when the locks of a process were renewed."
        return self._histogram("lock_margin_seconds", text, BUCKETS_OF_LOCKS, [])

    def _histogram(self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str]) -> Histogram:
        from prometheus_client import Histogram

        return Histogram(f"{NAMESPACE}_{name}", text, labels, registry=self.registry, buckets=buckets)

    @cached_property
    def _reported(self) -> Gauge:
        from prometheus_client import Gauge

        return Gauge(
            f"{NAMESPACE}_stalled_reported",
            "Jobs that the last report-only check would have recovered or failed.",
            ["queue_name", "would"],
            registry=self.registry,
            multiprocess_mode="livemax",
        )

    @cached_property
    def _smallest_ttl(self) -> Gauge:
        from prometheus_client import Gauge

        return Gauge(
            f"{NAMESPACE}_lock_smallest_ttl_milliseconds",
            "The least that was left of a lock when it was renewed.",
            registry=self.registry,
            multiprocess_mode="livemin",
        )
