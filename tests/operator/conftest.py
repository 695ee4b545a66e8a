from __future__ import annotations

import pytest

from ..support.command_line import Command


@pytest.fixture
def command(client, redis_url, capsys, monkeypatch) -> Command:
    """The command on an empty database, with tables wide enough."""
    monkeypatch.setenv("COLUMNS", "250")
    return Command(redis_url, capsys)
