from __future__ import annotations

import os
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
send_signal(broker, "after_stalled_report", "reported", would_recover=("a", "b"), would_fail=())
send_signal(broker, "after_crash_seen", "q", "host:1", ("a", "b"))
send_signal(broker, "after_locks_renewed", smallest_ttl=21_000)

import prometheus_client
{registry}
print(prometheus_client.generate_latest(registry).decode())
"""
DRAMATIQS_SERVER = """
import prometheus_client
from prometheus_client import multiprocess
registry = prometheus_client.CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
"""
LOCKS = "dramatiq_echomq_lock_smallest_ttl_milliseconds"
EXPECTED = [
    'dramatiq_echomq_stalled_checks_total{queue_name="q"} 2.0',
    'dramatiq_echomq_stalled_recovered_total{queue_name="q"} 2.0',
    'dramatiq_echomq_stalled_failed_total{queue_name="q"} 1.0',
    'dramatiq_echomq_stalled_reported{queue_name="reported",would="recover"} 2.0',
    'dramatiq_echomq_stalled_reported{queue_name="reported",would="fail"} 0.0',
    f"{LOCKS} 21000.0",
]


def run(program: str, tmp_path) -> list[str]:
    """What a program prints: a process of its own, since the client of Prometheus is set up once for each."""
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "dramatiq_prom_db": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    return printed.splitlines()


def test_the_signals_become_metrics(tmp_path):
    lines = run(
        PROGRAM.format(middleware="broker = StubBroker(middleware=[metrics])", registry="registry = metrics.registry"),
        tmp_path,
    )

    assert 'dramatiq_echomq_crashes_seen_total{queue_name="q"} 1.0' in lines
    assert set(EXPECTED) <= set(lines)
    assert [line for line in lines if '"reported"' in line and "stalled_reported{" not in line] == []


def test_dramatiqs_own_server_exports_them(tmp_path):
    setup = (
        "from dramatiq.middleware.prometheus import Prometheus\n"
        "broker = StubBroker(middleware=[Prometheus(), metrics])\n"
        "broker.emit_after('process_boot')"
    )

    assert set(EXPECTED) <= set(run(PROGRAM.format(middleware=setup, registry=DRAMATIQS_SERVER), tmp_path))


BOOT = """
import os
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware.prometheus import Prometheus
from dramatiq_echomq.prometheus import StalledMetrics
from dramatiq_echomq.signals import send_signal

broker = StubBroker(middleware=[Prometheus(), StalledMetrics()])
broker.emit_after("process_boot")
"""


def test_no_lock_is_shown_as_lost_before_there_was_any(tmp_path):
    program = BOOT + 'send_signal(broker, "after_stalled_check", "q", recovered=0, failed=0)\n' + DRAMATIQS_SERVER
    lines = run(program + "print(prometheus_client.generate_latest(registry).decode())", tmp_path)

    assert EXPECTED[0].replace("2.0", "1.0") in lines
    assert [line for line in lines if line.startswith(LOCKS)] == []


def test_the_gauges_of_a_process_that_was_killed_end_with_the_next_boot(tmp_path):
    low = 'send_signal(broker, "after_locks_renewed", smallest_ttl=10)\nos._exit(0)'
    run(BOOT + low, tmp_path)
    well = 'send_signal(broker, "after_locks_renewed", smallest_ttl=22_500)\n' + DRAMATIQS_SERVER
    lines = run(BOOT + well + "print(prometheus_client.generate_latest(registry).decode())", tmp_path)

    assert [line for line in lines if line.startswith(LOCKS)] == [f"{LOCKS} 22500.0"]


def test_a_process_that_lives_is_not_forgotten(tmp_path):
    file = tmp_path / f"gauge_livemin_{os.getpid()}.db"
    file.touch()
    (tmp_path / "counter_0.db").touch()
    prometheus.forget_dead_processes(tmp_path)

    assert file.exists()
    assert (tmp_path / "counter_0.db").exists()


def test_it_says_what_to_install_when_the_package_is_missing(monkeypatch):
    monkeypatch.setattr(prometheus, "find_spec", lambda name: None)

    with pytest.raises(ImportError, match=r'pip install "dramatiq-echomq\[prometheus\]"'):
        prometheus.StalledMetrics()
