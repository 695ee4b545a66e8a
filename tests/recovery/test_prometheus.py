from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import redis

from dramatiq_echomq.prometheus import QueueCollector, StalledMetrics, processes
from dramatiq_echomq.prometheus.stalled_metrics import COUNTERS

PROGRAM = """
from dramatiq.brokers.stub import StubBroker
from dramatiq_echomq import StalledCheck
from dramatiq_echomq.prometheus import StalledMetrics
from dramatiq_echomq.signals import send_signal

metrics = StalledMetrics()
{middleware}
done = StalledCheck("q", recovered=2, failed=1, recovered_ids=("a", "b"), recovered_ages=(50_000, None))
send_signal(broker, "after_stalled_sweep", "q", seconds=0.002, check=done, error=None)
send_signal(broker, "after_stalled_check", "q", recovered=2, failed=1)
send_signal(broker, "after_stalled_sweep", "q", seconds=7.0, check=None, error=TimeoutError())
send_signal(broker, "after_stalled_check", "q", recovered=0, failed=0)
send_signal(broker, "after_stalled_report", "reported", would_recover=("a", "b"), would_fail=())
send_signal(broker, "after_crash_seen", "q", "host:1", ("a", "b"))
send_signal(broker, "after_locks_renewed", smallest_ttl=21_000)
send_signal(broker, "after_lock_lost", "q", "a")

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
    'dramatiq_echomq_stalled_check_errors_total{queue_name="q"} 1.0',
    'dramatiq_echomq_stalled_reports_total{queue_name="reported"} 1.0',
    'dramatiq_echomq_locks_lost_total{queue_name="q"} 1.0',
    'dramatiq_echomq_stalled_check_duration_seconds_bucket{le="0.0025",queue_name="q"} 1.0',
    'dramatiq_echomq_stalled_check_duration_seconds_sum{queue_name="q"} 7.002',
    'dramatiq_echomq_stalled_recovery_seconds_sum{queue_name="q"} 50.0',
    'dramatiq_echomq_stalled_recovery_seconds_count{queue_name="q"} 1.0',
    'dramatiq_echomq_lock_margin_seconds_bucket{le="20.0"} 0.0',
    'dramatiq_echomq_lock_margin_seconds_bucket{le="25.0"} 1.0',
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
        timeout=100,
    ).stdout
    return printed.splitlines()


def test_the_signals_become_metrics(tmp_path):
    lines = run(
        PROGRAM.format(middleware="broker = StubBroker(middleware=[metrics])", registry="registry = metrics.registry"),
        tmp_path,
    )

    assert 'dramatiq_echomq_crashes_seen_total{queue_name="q"} 1.0' in lines
    assert set(EXPECTED) <= set(lines)
    assert [line for line in lines if re.search('stalled_(checks|recovered|failed).*"reported"', line)] == []


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
    processes.forget_dead_processes(tmp_path)

    assert file.exists()
    assert (tmp_path / "counter_0.db").exists()


def test_counters_begin_with_zero_so_that_their_first_increase_is_seen(tmp_path):
    first = """
from dramatiq_echomq import StalledCheck
send_signal(broker, "after_stalled_sweep", "q", seconds=0.002, check=StalledCheck("q"), error=None)
"""
    program = BOOT + first + DRAMATIQS_SERVER
    lines = run(program + "print(prometheus_client.generate_latest(registry).decode())", tmp_path)

    for name in COUNTERS:
        assert f'dramatiq_echomq_{name}_total{{queue_name="q"}} 0.0' in lines


@pytest.mark.parametrize("make", [StalledMetrics, lambda: QueueCollector(redis.Redis())])
def test_it_says_what_to_install_when_the_package_is_missing(make, monkeypatch):
    monkeypatch.setattr(processes, "find_spec", lambda name: None)

    with pytest.raises(ImportError, match=r'pip install "dramatiq-echomq\[prometheus\]"'):
        make()
