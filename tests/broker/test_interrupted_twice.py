"""Interrupts that come while Dramatiq deals with an earlier one, or with what an actor raised."""

from __future__ import annotations

import threading

import dramatiq
import pytest
from dramatiq.middleware import Interrupt, Retries

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working


class Abort(Interrupt):
    """What middleware may raise in any thread, anywhere."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Threads end without a word when they are interrupted."""
    monkeypatch.setattr(threading, "excepthook", lambda ended: None)


class Interrupting(dramatiq.Middleware):
    """Raises what ends a thread, once, where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def raise_once(self, where: str) -> None:
        if self.where == where:
            self.where = ""
            raise Abort

    def before_process_message(self, broker, message):
        if self.where == "announced":
            self.where = "logged"
            raise Abort

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if exception is not None:
            self.raise_once("told")


@pytest.mark.parametrize("at", ["announced", "logged", "told", "told after its retry"])
@pytest.mark.parametrize("max_retries", [0, 3])
def test_no_message_is_taken_for_completed(client, monkeypatch, at, max_retries):
    """It is tried again, or fails, by what its actor raised."""
    interrupting = Interrupting(at.split()[0])
    retries = Retries(max_retries=max_retries, min_backoff=1, max_backoff=1)
    is_first = at == "told after its retry"  # hooks are called from the last one to the first one
    broker = EchoMQBroker(client=client, middleware=[interrupting, retries] if is_first else [retries, interrupting])
    ran: list[int] = []

    @dramatiq.actor(queue_name="q", broker=broker)
    def work():
        ran.append(1)
        if len(ran) == 1 and at != "announced":
            raise ValueError("it failed")

    with working(broker, worker_threads=2) as worker:
        for thread in worker.workers:
            monkeypatch.setattr(thread.logger, "error", lambda *args, **options: interrupting.raise_once("logged"))
        work.send()
        broker.join("q", timeout=20_000)
    broker.close()

    assert not interrupting.where
    assert len(ran) == (at != "announced") + (max_retries > 0)
    reasons = [client.hget(b"emq:q:" + job_id, "failedReason") for job_id in client.zrange("emq:q:failed", 0, -1)]
    assert reasons == ([] if max_retries else [b"Abort" if at == "announced" else b"ValueError: it failed"])
    assert client.zcard("emq:q:completed") == (2 if max_retries else 0)
