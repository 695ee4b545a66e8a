"""What follows from a job must not be lost when it cannot be enqueued."""

from __future__ import annotations

import dramatiq
import pytest
import redis

from dramatiq_echomq.broker.queue import JobQueue

from ..support.brokers import working
from ..support.job_data import FAST, finished


def lose_redis_for_enqueues(monkeypatch):
    """Enqueueing fails, all else works."""

    def away(*_, **__):
        raise redis.ConnectionError("Redis is away")

    monkeypatch.setattr(JobQueue, "add", away)


def test_a_retry_that_cannot_be_enqueued_is_not_lost(client, full_broker, monkeypatch, caplog):
    @dramatiq.actor(broker=full_broker, **FAST)
    def work():
        lose_redis_for_enqueues(monkeypatch)
        raise RuntimeError("it broke")

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (0, 1)
    [job_id] = client.zrange("emq:default:failed", 0, -1)
    assert client.hget(f"emq:default:{job_id.decode()}", "failedReason") == b"RuntimeError: it broke"
    assert "a message that follows from it could not be enqueued" in caplog.text
    monkeypatch.undo()
    assert full_broker.retry("default", job_id)


def test_a_success_whose_callback_cannot_be_enqueued_is_not_lost(client, full_broker, monkeypatch):
    @dramatiq.actor(broker=full_broker)
    def told(message, result):
        pass

    @dramatiq.actor(broker=full_broker, on_success="told")
    def work():
        lose_redis_for_enqueues(monkeypatch)

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (0, 1)


def test_a_message_that_an_actor_could_not_send_is_the_actors_failure(client, full_broker, monkeypatch):
    """It may catch the error and go on."""

    @dramatiq.actor(broker=full_broker)
    def work():
        with monkeypatch.context() as patch:
            lose_redis_for_enqueues(patch)
            with pytest.raises(redis.ConnectionError):
                work.send()

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (1, 0)
