"""Which process a lock belongs to, as its token says."""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from dramatiq import Message

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.worker_id import WorkerId


def test_each_token_begins_with_the_id_of_its_process(client):
    broker = EchoMQBroker(client=client)
    for _ in range(3):
        broker.enqueue(Message("q", "actor", (), {}, {}))
    consumer = broker.consume("q", prefetch=2, timeout=100)
    assert all([next(consumer), next(consumer)])
    tokens = [client.get(key) for key in client.scan_iter("emq:q:*:lock")]
    assert len({*tokens}) == len(tokens) == 2
    for token in tokens:
        assert token.decode().startswith(f"{broker.worker_id}:")
        assert len(token.split(b":")) == 3


def test_no_two_brokers_and_no_two_calls_have_the_same_id():
    one, other = WorkerId(), WorkerId()
    assert str(one) == str(one) != str(other)
    assert one.next_call() != one.next_call()


def test_threads_that_ask_at_the_same_time_get_the_same_id(monkeypatch):
    """Or other workers would not know whose the locks are that a process leaves behind."""
    monkeypatch.setattr("dramatiq_echomq.broker.worker_id.uuid4", lambda: time.sleep(0.1) or uuid4())
    worker_id = WorkerId()
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: str(worker_id), range(4))]
    assert found == [str(worker_id)] * 4


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_has_its_own_id(broker):
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: sending.send(str(broker.worker_id)))
    child.start()
    assert receiving.poll(30)
    assert receiving.recv() != str(broker.worker_id)
    child.join(30)
