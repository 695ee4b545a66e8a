"""What Prometheus sees of workers that are killed, at the port that Dramatiq's own server listens on."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dramatiq_echomq import EchoMQBroker

from ..support.fleet import Fleet, two_servers
from ..support.job_data import message
from ..support.servers import free_port, wait_until


def scrape(port: int) -> dict[str, float]:
    """The series without labels or of queue `q`, by their names; empty while nobody listens."""
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            samples = [sample for family in families for sample in family.samples]
        return {
            sample.name.removeprefix("dramatiq_echomq_"): sample.value
            for sample in samples
            if sample.labels in ({}, {"queue_name": "q"}) and sample.name.startswith("dramatiq_echomq_")
        }
    return {}


@pytest.mark.at_once
def test_a_killed_worker_is_counted_and_leaves_no_gauge_behind():
    with two_servers() as (server, direct, notes), tempfile.TemporaryDirectory() as directory:
        port = free_port()
        environment = {
            "APP_METRICS": "1",
            "dramatiq_prom_db": directory,
            "dramatiq_prom_host": "127.0.0.1",
            "dramatiq_prom_port": str(port),
        }
        broker = EchoMQBroker(url=server.url)
        settings = {"stalled_interval": 500, "crash_grace": 300, "lock_duration": 16_000}
        with Fleet(server.url, notes, environment=environment, **settings) as fleet:
            broker.enqueue(message(1, actor="outlive"))
            wait_until(lambda: notes.llen("starts") == 1)
            first = {"lock_smallest_ttl_milliseconds", "stalled_checks_total"}
            wait_until(lambda: first <= scrape(port).keys(), timeout=60)
            before = scrape(port)
            assert (before["stalled_recovered_total"], before["crashes_seen_total"]) == (0, 0)
            [killed] = fleet.pids()
            os.kill(killed, signal.SIGKILL)

            wait_until(lambda: direct.zcard("emq:q:completed"), timeout=60)
            after = wait_until(lambda: (found := scrape(port)).get("stalled_recovered_total") and found, timeout=60)

            assert after["crashes_seen_total"] == after["stalled_recovered_total"] == 1
            assert after["stalled_recovery_seconds_count"] == 1
            assert 0 < after["stalled_recovery_seconds_sum"] < 60
            assert after["stalled_checks_total"] >= before["stalled_checks_total"]
            assert not [name for name in os.listdir(directory) if name == f"gauge_livemin_{killed}.db"]
            assert after.get("lock_smallest_ttl_milliseconds", 16_000) > 0
        broker.close()
