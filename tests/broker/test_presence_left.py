"""Workers that end before their jobs do, as their shutdown timeout is over."""

from __future__ import annotations

import threading

import dramatiq
import pytest
from dramatiq import Worker

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.protocol.registrations import WorkerRegistration, connections_of

from ..support.brokers import recoverer_of, working
from ..support.queue_data import state
from ..support.servers import wait_until
from ..support.worker_data import registered


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


@pytest.fixture
def left(broker):
    """A worker that has ended while its job ran on, and what lets that end."""
    started, gate = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        gate.wait(20)

    actor = dramatiq.actor(work, broker=broker, queue_name="q")
    worker = Worker(broker, worker_timeout=20, worker_threads=1)
    worker.start()
    actor.send()
    assert started.wait(20)
    worker.stop(timeout=1)
    yield gate
    gate.set()
    for thread in worker.workers:
        thread.join(20)


def registration(client) -> WorkerRegistration | None:
    [text] = registered(client)
    return WorkerRegistration.decode(text)


def test_others_see_that_a_worker_is_gone_which_ended_before_its_job(client, broker, left):
    gone = registration(client)
    assert gone.worker_id == str(broker.worker_id)
    wait_until(lambda: not connections_of(client, [gone.client_id]))
    recoverer, recorder = recoverer_of(client, "q", crash_grace=1)

    def is_back() -> bool:
        client.delete(*client.scan_iter("emq:*:echomq:workers:look:*"), "none")
        recoverer.crashes.look()
        return "wait" in state(client)

    wait_until(is_back)
    assert [len(job_ids) for _, (_, job_ids) in recorder.named("crash")] == [1]
    assert registered(client) == {}


def test_a_worker_that_boots_again_stands_there_once_until_it_ends(client, broker, left):
    before = registration(client)
    with working(broker):
        wait_until(lambda: registration(client) != before)
        assert registration(client).worker_id == before.worker_id
    assert registered(client) == {}
