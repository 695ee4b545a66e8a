"""Which process a lock belongs to, as its token says."""

from __future__ import annotations

import os

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


def test_a_forked_process_has_its_own_id(monkeypatch):
    worker_id = WorkerId()
    before = str(worker_id)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert str(worker_id) != before
