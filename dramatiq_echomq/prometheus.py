from __future__ import annotations

import os
from functools import cached_property
from importlib.util import find_spec
from types import SimpleNamespace

from dramatiq import Broker
from dramatiq.middleware.prometheus import DB_PATH

from .signals import StalledSignals


class StalledMetrics(StalledSignals):
    """Middleware that exports what the checks of stalled jobs did, beside the
    metrics of Dramatiq's own Prometheus middleware and by its server.  Needs
    the extra ``prometheus``.

    * ``dramatiq_echomq_stalled_checks_total``
    * ``dramatiq_echomq_stalled_recovered_total``
    * ``dramatiq_echomq_stalled_failed_total``
    * ``dramatiq_echomq_lock_smallest_ttl_milliseconds``: the least that was
      left of a lock at the last renewal.  It nears zero before jobs are lost.

    The first three carry the label ``queue_name``.

    Raises:
      ImportError: When the package ``prometheus-client`` is missing.
    """

    def __init__(self) -> None:
        if find_spec("prometheus_client") is None:
            raise ImportError('StalledMetrics needs a package: pip install "dramatiq-echomq[prometheus]"')

    def after_process_boot(self, broker: Broker) -> None:
        # Dramatiq's middleware sets the same, perhaps later than the first import of the client.
        os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", DB_PATH)

    @cached_property
    def metrics(self) -> SimpleNamespace:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        registry = CollectorRegistry()

        def counter(name: str, text: str) -> Counter:
            return Counter(f"dramatiq_echomq_stalled_{name}", text, ["queue_name"], registry=registry)

        return SimpleNamespace(
            registry=registry,
            checks=counter("checks", "Checks for stalled jobs."),
            recovered=counter("recovered", "Stalled jobs that went back to wait."),
            failed=counter("failed", "Jobs that had stalled too often and were failed."),
            smallest_ttl=Gauge(
                "dramatiq_echomq_lock_smallest_ttl_milliseconds",
                "The least that was left of a lock when it was renewed.",
                registry=registry,
                multiprocess_mode="livemin",
            ),
        )

    def after_stalled_check(self, broker: Broker, queue_name: str, *, recovered: int, failed: int) -> None:
        self.metrics.checks.labels(queue_name).inc()
        self.metrics.recovered.labels(queue_name).inc(recovered)
        self.metrics.failed.labels(queue_name).inc(failed)

    def after_locks_renewed(self, broker: Broker, *, smallest_ttl: int) -> None:
        self.metrics.smallest_ttl.set(smallest_ttl)
