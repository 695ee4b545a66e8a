from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import pytest
import redis
from rich.console import Console

from dramatiq_echomq import QueueInspector
from dramatiq_echomq.cli.session import Session
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
def worker_of_q(redis_url) -> Iterator[redis.Redis]:
    """The connection on which a worker of the queue ``q`` waits, as BullMQ names it."""
    name = f"emq:{base64.b64encode(b'q').decode()}:w:host:7"
    with redis.Redis.from_url(redis_url, single_connection_client=True, client_name=name) as connection:
        connection.ping()
        yield connection


@pytest.fixture
def busy(client) -> Iterator[QueueInspector]:
    """An inspector of a busy queue, which its looks leave as it was."""
    put_busy_queue(client)
    before = dump(client)
    yield QueueInspector(client)
    assert dump(client) == before


@pytest.fixture
def doctor(client, monkeypatch) -> QueueDoctor:
    """A doctor for whom nothing is wrong with the server, whose clock the tests stop, and workers are connected."""
    monkeypatch.setattr("dramatiq_echomq.inspection.records.QueueInfo.lacks_workers", False)
    monkeypatch.setattr("dramatiq_echomq.inspection.doctor.doctor.examine_server", lambda _: [])
    return QueueDoctor(client)


@pytest.fixture
def terminal(monkeypatch) -> io.StringIO:
    """What a terminal is shown."""
    shown = io.StringIO()
    monkeypatch.setattr(Session, "console", Console(file=shown, force_terminal=True, width=250))
    return shown
