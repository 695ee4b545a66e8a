from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest
import redis

from dramatiq_echomq import Settings

from ..support.servers import Server


@pytest.fixture
def admin(server: Server) -> Iterator[redis.Redis]:
    """A client that may do anything on the server of this module, which is empty and knows no script."""
    with server.client() as admin:
        admin.flushall()
        admin.script_flush()
        yield admin


@pytest.fixture
def nothing_set(monkeypatch):
    """A process without settings, in its environment or in Django."""
    for name in Settings.__dataclass_fields__:
        monkeypatch.delenv(f"DRAMATIQ_ECHOMQ_{name.upper()}", raising=False)
    monkeypatch.delitem(sys.modules, "django.conf", raising=False)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)


@pytest.fixture
def django(monkeypatch):
    """Put a Django with these settings into the process."""

    def configure(*, configured: bool = True, **settings) -> None:
        module = ModuleType("django.conf")
        module.settings = SimpleNamespace(configured=configured, **settings)
        monkeypatch.setitem(sys.modules, "django.conf", module)

    return configure
