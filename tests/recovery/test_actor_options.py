"""The options of actors that only EchoMQBroker obeys: an application can be tested without it, and no other takes them
in silence."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

from ..support.brokers import lines, working

OPTIONS = {"max_stalled_count": 0, "lock_duration": 60_000, "broker_priority": 1}


def declare(broker):
    broker.add_middleware(StalledCheckerMiddleware())

    @dramatiq.actor(broker=broker, **OPTIONS)
    def charge(card):
        charged.append(card)

    @dramatiq.actor(broker=broker, max_stalled_count=0)
    def refund(card):
        pass

    @dramatiq.actor(broker=broker, max_retries=0)
    def look(card):
        pass

    charged: list[str] = []
    return charge, charged


def test_an_application_can_be_tested_with_a_stub_broker(caplog):
    broker = StubBroker()
    charge, charged = declare(broker)
    charge.send("4711")
    with working(broker) as worker:
        broker.join("default", fail_fast=True)
        worker.join()
    assert charged == ["4711"]
    assert lines(caplog, "WARNING") == []


@pytest.mark.parametrize("kind", [RedisBroker, RabbitmqBroker], ids=lambda kind: kind.__name__)
def test_a_broker_that_ignores_them_is_warned_of_once_for_each_actor(kind, caplog):
    broker = kind(url="amqp://localhost:1" if kind is RabbitmqBroker else "redis://localhost:1")
    declare(broker)
    ignored = f"has options that {kind.__name__} ignores, which are for EchoMQBroker"
    assert lines(caplog, "WARNING") == [
        f"Actor 'charge' {ignored}: max_stalled_count, lock_duration, broker_priority.",
        f"Actor 'refund' {ignored}: max_stalled_count.",
    ]


def test_of_the_broker_that_obeys_them_nobody_is_warned(client, caplog):
    broker = EchoMQBroker(client=client)
    declare(broker)
    broker.close()
    assert lines(caplog, "WARNING") == []
