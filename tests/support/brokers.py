"""Brokers, workers and middleware for tests of what runs inside a Dramatiq worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import dramatiq
import redis
from dramatiq import Broker, Worker
from dramatiq.brokers.stub import StubBroker
from prometheus_client import Counter, Gauge

from dramatiq_echomq import Settings, StalledSignals
from dramatiq_echomq.recovery.recoverer import Recoverer


class Recorder(StalledSignals):
    """Keeps the signals it was sent, as (signal, queue, what it said)."""

    def __init__(self) -> None:
        self.signals: list[tuple] = []

    def after_stalled_check(self, broker, queue_name, *, recovered, failed):
        self.signals.append(("check", queue_name, (recovered, failed)))

    def after_stalled_recovered(self, broker, queue_name, job_ids):
        self.signals.append(("recovered", queue_name, tuple(job_ids)))

    def after_stalled_failed(self, broker, queue_name, job_ids):
        self.signals.append(("failed", queue_name, tuple(job_ids)))

    def after_crash_seen(self, broker, queue_name, worker, job_ids):
        self.signals.append(("crash", queue_name, (worker, tuple(job_ids))))

    def after_stalled_report(self, broker, queue_name, *, would_recover, would_fail):
        self.signals.append(("report", queue_name, (tuple(would_recover), tuple(would_fail))))

    def after_stalled_hold(self, broker, queue_name, *, would_recover, active):
        self.signals.append(("hold", queue_name, (would_recover, active)))

    def after_lock_lost(self, broker, queue_name, job_id):
        self.signals.append(("lock lost", queue_name, job_id))

    def named(self, signal: str) -> list[tuple]:
        return [entry[1:] for entry in self.signals if entry[0] == signal]


@contextmanager
def working(broker: Broker, **parameters) -> Iterator[Worker]:
    """A real worker of a broker."""
    worker = Worker(broker, **{"worker_timeout": 20, "worker_threads": 1, **parameters})
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


@contextmanager
def booted(broker: Broker, *queues: str) -> Iterator[SimpleNamespace]:
    """What middleware sees of a worker with these queues, without the worker."""
    worker = SimpleNamespace(consumers=dict.fromkeys(queues))
    broker.emit_before("worker_boot", worker)
    broker.emit_after("worker_boot", worker)
    try:
        yield worker
    finally:
        broker.emit_before("worker_shutdown", worker)
        broker.emit_after("worker_shutdown", worker)


def recoverer_of(client: redis.Redis, *queues: str, **settings) -> tuple[Recoverer, Recorder]:
    """A Recoverer to call `check` of, and what records its signals."""
    recorder = Recorder()
    broker = StubBroker(middleware=[recorder])
    worker = SimpleNamespace(consumers=dict.fromkeys(queues or ("q",)))
    settings = {"stalled_interval": 100, **settings}
    return Recoverer(broker, worker, client=client, settings=Settings(**settings), queues=None), recorder


def declare_resize_and_bad(broker: Broker, **options) -> None:
    """Declare two actors of ``q``: one that returns what it was given, and one that fails."""

    @dramatiq.actor(broker=broker, queue_name="q", **options)
    def resize(*args, **kwargs):
        return [list(args), kwargs]

    @dramatiq.actor(broker=broker, queue_name="q")
    def bad():
        raise ValueError("it is bad")


def value_of(metric: Counter | Gauge) -> float:
    """The value of a metric that has one."""
    return next(iter(metric.collect())).samples[0].value


def sweepers() -> list[threading.Thread]:
    """The checker threads that are alive."""
    return [thread for thread in threading.enumerate() if thread.name == "dramatiq-echomq-sweeper"]


def lines(caplog, *levels: str) -> list[str]:
    """The log lines of this package, of these levels or of all."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("dramatiq_echomq") and (not levels or record.levelname in levels)
    ]
