from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
import redis
from freezegun import freeze_time
from hypothesis import HealthCheck, settings

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.protocol import scripts

from .support.at_once import AtOnce
from .support.distribution import Distribution, pytest_xdist_auto_num_workers  # noqa: F401
from .support.peer import Node, ready_node
from .support.queue_data import NOW
from .support.servers import Server

# The same examples in each run, however long they take, so that none fails by chance; others with ECHOMQ_EXPLORE=1.
settings.register_profile(
    "tests",
    derandomize=os.environ.get("ECHOMQ_EXPLORE") != "1",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "at_once(long=False): runs beside others with this mark, without fixtures")
    config.pluginmanager.register(AtOnce())
    config.pluginmanager.register(Distribution())


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A server for the whole run: the one at ``REDIS_URL``, or one of our own."""
    if "REDIS_URL" in os.environ:
        yield os.environ["REDIS_URL"]
        return
    with Server() as server:
        yield server.url


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for the tests of one module, which they may fill, limit or stop."""
    with Server() as server:
        yield server


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of an empty database."""
    client = redis.Redis.from_url(redis_url, socket_timeout=5)  # which redis-py 8 has of itself
    client.flushdb()
    forget_consumers(client)
    yield client
    client.close()


def forget_consumers(client: redis.Redis) -> None:
    """Close the connections by which consumers that earlier tests left open count as workers of their queues."""
    own = f":w:{socket.gethostname()}:{os.getpid()}"
    for connection in client.client_list():
        if connection["name"].endswith(own):
            client.client_kill_filter(_id=connection["id"])


@pytest.fixture
def broker(client: redis.Redis) -> Iterator[EchoMQBroker]:
    """A broker without middleware, on an empty database."""
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


@pytest.fixture
def full_broker(client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[EchoMQBroker]:
    """A broker with Dramatiq's own middleware, on an empty database.  It is the global one, and joins fast."""
    monkeypatch.setitem(EchoMQBroker.join.__kwdefaults__, "interval", 10)
    broker = EchoMQBroker(client=client)
    monkeypatch.setattr("dramatiq.broker.global_broker", broker)
    yield broker
    broker.close()


@pytest.fixture(scope="module")
def clock() -> Iterator[None]:
    """A clock that stands still at ``NOW``, here and for scripts, for tests that compare timestamps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripts, "TIME", NOW)
        with freeze_time(datetime.fromtimestamp(NOW / 1000, tz=timezone.utc), ignore=["_pytest.timing"]):
            yield


@pytest.fixture(scope="session")
def node(redis_url: str) -> Iterator[Node]:
    """BullMQ 5 in Node.js, on the server of the whole run."""
    node = ready_node(redis_url)
    yield node
    node.close()


@pytest.fixture(scope="session")
def node6(redis_url: str) -> Iterator[Node]:
    """BullMQ 6 in Node.js, on the server of the whole run."""
    node = ready_node(redis_url, "bullmq6")
    yield node
    node.close()
