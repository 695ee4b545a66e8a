"""Hooks that do nothing are not called, and all others are, as Dramatiq calls them."""

from __future__ import annotations

import logging

import pytest
from dramatiq import Middleware
from dramatiq.middleware import MiddlewareError

from dramatiq_echomq import EchoMQBroker

from ..support.servers import wait_until


class Listening(Middleware):
    def __init__(self, heard: list, name: str) -> None:
        self.heard, self.name = heard, name

    def before_ack(self, broker, message):
        self.heard.append((self.name, "before", broker, message))

    def after_ack(self, broker, message):
        self.heard.append((self.name, "after", broker, message))


class Slotted:
    """No Middleware at all, and without a dictionary."""

    __slots__ = ("heard",)

    def __init__(self, heard: list) -> None:
        self.heard = heard

    def before_ack(self, broker, message):
        self.heard.append(("slotted", "before", broker, message))


@pytest.fixture
def heard() -> list:
    return []


def broker_with(*middleware) -> EchoMQBroker:
    broker = EchoMQBroker(middleware=[])
    broker.middleware[:] = middleware
    return broker


def emit(broker) -> None:
    broker.emit_before("ack", "message")
    broker.emit_after("ack", "message")


def test_hooks_are_called_before_in_order_and_after_in_reverse(heard):
    broker = broker_with(Listening(heard, "one"), Middleware(), Listening(heard, "two"))

    emit(broker)

    assert heard == [
        (name, when, broker, "message")
        for name, when in [("one", "before"), ("two", "before"), ("two", "after"), ("one", "after")]
    ]


def test_middleware_that_comes_and_goes_is_heard_of_at_once(heard):
    broker = broker_with(Listening(heard, "one"))
    emit(broker)
    broker.add_middleware(Listening(heard, "two"))
    emit(broker)
    del broker.middleware[0]
    emit(broker)

    assert [name for name, when, *_ in heard if when == "before"] == ["one", "one", "two", "two"]


def test_a_hook_of_an_object_alone_counts(heard):
    middleware = Middleware()
    middleware.before_ack = lambda broker, message: heard.append(message)

    emit(broker_with(middleware, Slotted(heard)))

    assert [heard[0], heard[1][0]] == ["message", "slotted"]


@pytest.mark.parametrize("where", ["object", "class", "Middleware"])
def test_a_hook_that_is_replaced_is_heard_of_soon(heard, monkeypatch, where):
    class Own(Middleware):
        pass

    middleware = Own()
    broker = broker_with(middleware)
    emit(broker)
    place = {"object": middleware, "class": Own, "Middleware": Middleware}[where]
    monkeypatch.setattr(place, "before_ack", lambda *args: heard.append(args[-1]))
    wait_until(lambda: emit(broker) or heard)
    monkeypatch.undo()
    heard.clear()
    emit(broker)

    assert heard == []


def test_a_hook_that_fails_is_logged_and_the_others_are_called(heard, caplog):
    class Failing(Middleware):
        def before_ack(self, broker, message):
            raise ValueError("no")

        after_ack = before_ack

    emit(broker_with(Failing(), Listening(heard, "one"), Failing()))

    assert [when for _, when, *_ in heard] == ["before", "after"]
    assert [(record.levelno, record.args[0]) for record in caplog.records] == [
        *[(logging.CRITICAL, "before_ack")] * 2,
        *[(logging.CRITICAL, "after_ack")] * 2,
    ]


def test_middleware_may_stop_what_comes_after(heard):
    class Stopping(Middleware):
        def before_ack(self, broker, message):
            raise MiddlewareError("stop")

    with pytest.raises(MiddlewareError):
        broker_with(Stopping(), Listening(heard, "one")).emit_before("ack", "message")

    assert heard == []
