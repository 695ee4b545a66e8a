from __future__ import annotations

from collections.abc import Iterator

import pytest

from dramatiq_echomq import QueueInspector
from dramatiq_echomq.inspection.doctor.doctor import QueueDoctor

from ..support.command_line import Command
from ..support.operator_data import put_busy_queue
from ..support.queue_data import dump


@pytest.fixture
def command(client, redis_url, capsys, monkeypatch) -> Command:
    """The command on an empty database, with tables wide enough."""
    monkeypatch.setenv("COLUMNS", "250")
    return Command(redis_url, capsys)


@pytest.fixture
def busy(client) -> Iterator[QueueInspector]:
    """An inspector of a busy queue, which its looks leave as it was."""
    put_busy_queue(client)
    before = dump(client)
    yield QueueInspector(client)
    assert dump(client) == before


@pytest.fixture
def doctor(client, monkeypatch) -> QueueDoctor:
    """A doctor for whom nothing is wrong with the server, whose clock the tests stop."""
    monkeypatch.setattr("dramatiq_echomq.inspection.doctor.doctor.examine_server", lambda _: [])
    return QueueDoctor(client)
