from __future__ import annotations

import subprocess
import sys

from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq.prometheus import StalledMetrics
from dramatiq_echomq.signals import send_signal


def test_the_signals_become_metrics():
    broker = StubBroker(middleware=[])
    metrics = StalledMetrics()
    broker.add_middleware(metrics)

    send_signal(broker, "after_stalled_check", "q", recovered=2, failed=1)
    send_signal(broker, "after_stalled_check", "q", recovered=0, failed=0)
    send_signal(broker, "after_locks_renewed", smallest_ttl=21_000)

    def value(name: str, **labels: str) -> float | None:
        return metrics.metrics.registry.get_sample_value(f"dramatiq_echomq_{name}", labels)

    assert value("stalled_checks_total", queue_name="q") == 2
    assert value("stalled_recovered_total", queue_name="q") == 2
    assert value("stalled_failed_total", queue_name="q") == 1
    assert value("lock_smallest_ttl_milliseconds") == 21_000


def test_dramatiqs_own_server_exports_them(tmp_path):
    program = """
import dramatiq
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware.prometheus import Prometheus
from dramatiq_echomq.prometheus import StalledMetrics
from dramatiq_echomq.signals import send_signal

broker = StubBroker(middleware=[Prometheus(), StalledMetrics()])
broker.emit_after("process_boot")
send_signal(broker, "after_stalled_check", "q", recovered=3, failed=0)

import prometheus_client
from prometheus_client import multiprocess
registry = prometheus_client.CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(prometheus_client.generate_latest(registry).decode())
"""
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "dramatiq_prom_db": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout

    assert 'dramatiq_echomq_stalled_recovered_total{queue_name="q"} 3.0' in printed
