from __future__ import annotations

import subprocess
import sys

import pytest

from dramatiq_echomq import prometheus

PROGRAM = """
from dramatiq.brokers.stub import StubBroker
from dramatiq_echomq.prometheus import StalledMetrics
from dramatiq_echomq.signals import send_signal

metrics = StalledMetrics()
{middleware}
send_signal(broker, "after_stalled_check", "q", recovered=2, failed=1)
send_signal(broker, "after_stalled_check", "q", recovered=0, failed=0)
send_signal(broker, "after_locks_renewed", smallest_ttl=21_000)

import prometheus_client
{registry}
print(prometheus_client.generate_latest(registry).decode())
"""
EXPECTED = [
    'dramatiq_echomq_stalled_checks_total{queue_name="q"} 2.0',
    'dramatiq_echomq_stalled_recovered_total{queue_name="q"} 2.0',
    'dramatiq_echomq_stalled_failed_total{queue_name="q"} 1.0',
]


def exported(tmp_path, middleware: str, registry: str) -> list[str]:
    """What a process exports: a process of its own, since the client of Prometheus is set up once for each."""
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(middleware=middleware, registry=registry)],
        env={"PATH": "/usr/bin:/bin", "dramatiq_prom_db": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    return printed.splitlines()


def test_the_signals_become_metrics(tmp_path):
    lines = exported(tmp_path, "broker = StubBroker(middleware=[metrics])", "registry = metrics.metrics.registry")

    assert set(EXPECTED) <= set(lines)
    assert "dramatiq_echomq_lock_smallest_ttl_milliseconds 21000.0" in lines


def test_dramatiqs_own_server_exports_them(tmp_path):
    lines = exported(
        tmp_path,
        "from dramatiq.middleware.prometheus import Prometheus\n"
        "broker = StubBroker(middleware=[Prometheus(), metrics])\n"
        "broker.emit_after('process_boot')",
        "from prometheus_client import multiprocess\n"
        "registry = prometheus_client.CollectorRegistry()\n"
        "multiprocess.MultiProcessCollector(registry)",
    )

    assert set(EXPECTED) <= set(lines)
    assert "dramatiq_echomq_lock_smallest_ttl_milliseconds 21000.0" in lines


def test_it_says_what_to_install_when_the_package_is_missing(monkeypatch):
    monkeypatch.setattr(prometheus, "find_spec", lambda name: None)

    with pytest.raises(ImportError, match=r'pip install "dramatiq-echomq\[prometheus\]"'):
        prometheus.StalledMetrics()
