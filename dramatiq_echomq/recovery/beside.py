"""What checks know of the broker beside which they run, which may be any."""

from __future__ import annotations

from typing import Any

from dramatiq import Broker
from dramatiq.brokers.stub import StubBroker

from ..errors import SettingError
from ..settings import Settings
from ..validation import require_client


def settings_of(broker: Broker) -> Settings | None:
    """Return the settings of an EchoMQBroker, or None for any other broker."""
    settings = getattr(broker, "settings", None)
    return settings if isinstance(settings, Settings) else None


def redis_client_of(broker: Broker) -> Any:
    """Return the broker's own Redis client, or None when it has none."""
    client = getattr(broker, "client", None)
    try:
        require_client(client)
    except SettingError:
        return None
    return client


def is_for_tests(broker: Broker) -> bool:
    """Return whether a broker stands for another one, in the tests of an application."""
    return isinstance(broker, StubBroker)
