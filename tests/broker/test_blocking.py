"""The command with which an idle consumer lets Redis wait for a marker."""

from __future__ import annotations

import base64
import threading

import pytest
import redis
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker

from ..support.job_data import WORKER, add
from ..support.queue_data import commands_so_far
from ..support.servers import wait_until


def blocked(client) -> int:
    return client.info("clients")["blocked_clients"]


@pytest.mark.parametrize("due_in", [0, 0.0001, 0.0019])
def test_no_block_is_so_short_that_it_is_for_ever(client, broker, due_in):
    """Redis 6.2 makes whole ms of a timeout, and 0 of what is less than one."""
    wait = broker.consume("q", timeout=100).marker_wait
    wait.start(due_in)

    assert wait.wait(5)


def test_one_block_goes_on_while_the_consumer_looks_up(client, broker):
    consumer = broker.consume("q", timeout=20)
    assert next(consumer) is None
    before = sum(commands_so_far(client).values())

    assert [next(consumer) for _ in range(10)] == [None] * 10

    assert sum(commands_so_far(client).values()) == before
    assert blocked(client) == 1
    consumer.close()


@pytest.mark.parametrize("may_name", [True, False])
def test_the_connection_that_blocks_has_the_name_of_a_worker(client, broker, may_name):
    queue = f"named-{may_name}"
    if not may_name:
        client.execute_command("ACL", "SETUSER", "nameless", "on", "nopass", "~*", "+@all", "-client|setname")
    kwargs = client.connection_pool.connection_kwargs
    own = (
        redis.Redis(host=kwargs["host"], port=kwargs["port"], username="nameless", password="x")
        if not may_name
        else None
    )
    broker = broker if may_name else EchoMQBroker(client=own, middleware=[])
    consumer = broker.consume(queue, timeout=20)

    assert next(consumer) is None

    name = f"emq:{base64.b64encode(queue.encode()).decode()}:w:{WORKER}"
    assert (name in [each["name"] for each in client.client_list()]) == may_name
    consumer.close()


def test_the_end_of_a_worker_ends_its_block_at_once(client, broker):
    consumer = broker.consume("q", timeout=10_000)
    waiting = threading.Thread(target=next, args=[consumer])
    waiting.start()
    wait_until(lambda: blocked(client) == 1)

    consumer.timeout = 0.01
    broker.emit_before("worker_shutdown", None)
    waiting.join(2)
    assert not waiting.is_alive()
    next(consumer)

    wait_until(lambda: blocked(client) == 0)
    add(broker)
    assert client.zcard("emq:q:marker") == 1
    consumer.close()


def test_a_block_that_redis_does_not_end_is_given_up(client, broker, monkeypatch):
    consumer = broker.consume("q", timeout=20)
    assert next(consumer) is None
    monkeypatch.setattr("dramatiq_echomq.broker.marker_wait.GRACE", -60)

    with pytest.raises(ConnectionClosed, match="did not end"):
        next(consumer)


def test_a_connection_that_is_cut_is_a_closed_one_to_dramatiq(client, broker):
    consumer = broker.consume("q", timeout=200)
    assert next(consumer) is None

    client.client_kill_filter(_type="normal", skipme=True)

    with pytest.raises(ConnectionClosed):
        next(consumer)
    assert next(consumer) is None
    consumer.close()
