"""What the doctor says of a server."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq.inspection.doctor.doctor import QueueDoctor

from ..support.queue_data import META, NOW, put

pytestmark = pytest.mark.usefixtures("clock")


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, [("eviction", "maxmemory-policy is allkeys-lru")]),
        ({"redis_version": "6.0.16"}, [("old-server", "it is Redis 6.0.16")]),
        ({"redis_version": "6.2.0", "maxmemory_policy": "noeviction"}, []),
        ({"redis_version": "7.2.4", "valkey_version": "7.0.0"}, [("old-server", "it is Valkey 7.0.0")]),
        ({"redis_version": "odd"}, []),
    ],
)
def test_a_server_that_does_harm_is_told(client, monkeypatch, info, expected):
    put(client, meta=META)
    monkeypatch.setattr(redis.Redis, "info", lambda self: info)
    monkeypatch.setattr(redis.Redis, "time", lambda self: (NOW // 1000, 0))

    assert [(finding.kind, finding.detail) for finding in QueueDoctor(client).examine("q")] == expected


@pytest.mark.parametrize(("seconds", "word"), [(9, "ahead of"), (-9, "behind"), (1, "")])
def test_clocks_that_differ_are_told(client, monkeypatch, seconds, word):
    put(client, meta=META)
    monkeypatch.setattr(redis.Redis, "time", lambda self: (NOW // 1000 + seconds, 0))

    findings = QueueDoctor(client).examine("q")

    expected = [f"the clock of Redis is 9.0 s {word} the one here"] if word else []
    assert [finding.detail for finding in findings] == expected
