from __future__ import annotations

import pytest
import redis

from ..support.brokers import recoverer_of
from ..support.queue_data import put
from ..support.worker_data import connected, lock


@pytest.fixture
def worker(redis_url, client):
    """Make workers, each a connection that is registered; they hold jobs of ``q``."""
    connections: list[redis.Redis] = []

    def make(worker_id: str, *job_ids: str, queue: str = "q"):
        put(client, queue, active=[*job_ids[::-1]] or ["0"], jobs={job_id: {} for job_id in job_ids})
        lock(client, worker_id, *job_ids, queue=queue)
        own, text = connected(redis_url, client, worker_id, queue=queue)
        connections.append(own)
        return own, text

    yield make
    for connection in connections:
        connection.close()


@pytest.fixture
def watch(client):
    """A watch with a grace of 100 ms that looks whenever it is told to, and what records its signals."""

    def make(*queues: str, on: redis.Redis = client, **settings):
        recoverer, recorder = recoverer_of(on, *queues, **{"crash_grace": 100, **settings})
        look = recoverer.crashes.look

        def look_now() -> float:
            for key in client.scan_iter("emq:*:echomq:workers:look:*"):
                client.delete(key)
            return look()

        return look_now, recorder

    return make
