from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dramatiq
import pytest
from dramatiq import MessageProxy
from dramatiq.brokers.redis import RedisBroker

from ..support.failures import Hooks, sent_to
from ..support.job_data import JOB, take
from ..support.queue_data import put


@pytest.fixture
def held(client, broker) -> MessageProxy:
    """A job that the broker's process holds."""
    put(client, wait=["a"], jobs={"a": JOB})
    return take(broker)[1][0]


@pytest.fixture
def held_jobs(client, broker) -> dict[str, MessageProxy]:
    """Jobs of the queues ``bad`` and ``good`` that the broker's process holds, by name."""
    put(client, "bad", wait=["c", "b"], jobs={"b": JOB, "c": JOB})
    put(client, "good", wait=["a"], jobs={"a": JOB})
    jobs = [*take(broker, 2, queue="bad")[1], *take(broker, queue="good")[1]]
    return dict(zip("bca", jobs, strict=True))


@pytest.fixture
def hooks(full_broker) -> Hooks:
    """What the middleware of the full broker hears."""
    hooks = Hooks()
    full_broker.add_middleware(hooks)
    return hooks


@pytest.fixture
def told(full_broker) -> Callable[[], list[list[Any]]]:
    """What the actor `told`, which has a queue of its own, was sent."""

    @dramatiq.actor(broker=full_broker, queue_name="told", actor_name="told")
    def actor(message, exception):
        pass

    return lambda: sent_to(full_broker.client, "told")


@pytest.fixture
def old_broker(client) -> RedisBroker:
    """A broker of Dramatiq's own, whose messages are moved."""
    broker = RedisBroker(client=client, middleware=[], maintenance_chance=0)  # which comes by chance
    broker.declare_queue("q")
    return broker
