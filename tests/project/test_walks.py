"""How far it is from an enqueue, or from an ack, to the script that does it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from dramatiq_echomq.protocol.scripts import Script

from ..support.job_data import add, take

#: How many modules of the package somebody reads who follows a call down to its script.
MOST_MODULES = 5


def modules_on_stack() -> Iterator[str]:
    """The modules of the package that are on the way to the caller's caller, the innermost first."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("dramatiq_echomq."):
            yield name.removeprefix("dramatiq_echomq.")
        frame = frame.f_back


@pytest.fixture
def walk(monkeypatch) -> list[str]:
    """The modules on the way to the last script that was called, the outermost first."""
    walk: list[str] = []
    call = Script.__call__

    def followed(script, *args, **kwargs):
        walk[:] = list(dict.fromkeys([*modules_on_stack()][::-1]))
        return call(script, *args, **kwargs)

    monkeypatch.setattr(Script, "__call__", followed)
    return walk


def test_an_enqueue_is_a_short_walk(broker, walk):
    add(broker)

    assert walk[0] == "broker.broker"
    assert len(walk) < MOST_MODULES  # the script's own module comes after them


def test_an_ack_is_a_short_walk(broker, walk):
    add(broker)
    consumer, [message] = take(broker)

    consumer.ack(message)

    assert walk[0] == "broker.consumer"
    assert len(walk) < MOST_MODULES
