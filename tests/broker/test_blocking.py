"""The command with which an idle consumer lets Redis wait for a marker."""

from __future__ import annotations

import base64
import threading
import time

import pytest
import redis
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.marker_wait import LONGEST_BLOCK

from ..support.acl import all_but
from ..support.job_data import WORKER, add, message
from ..support.proxy import LossyProxy
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


def fetches(client) -> int:
    return commands_so_far(client)["evalsha"]


@pytest.mark.parametrize("count", [1, 3])
def test_what_fetched_fewer_jobs_than_it_wanted_waits_for_the_next_without_another_fetch(client, broker, count):
    consumer = broker.consume("q", prefetch=8, timeout=20)
    assert next(consumer) is None
    broker.enqueue_many(message() for _ in range(count))
    before = fetches(client)

    assert [next(consumer) is None for _ in range(count + 1)] == [False] * count + [True]

    assert fetches(client) == before + 1
    assert blocked(client) == 1
    consumer.close()


def test_a_new_consumer_looks_first_although_the_last_one_left_the_queue_empty(client, broker):
    consumer = broker.consume("q", timeout=20)
    assert next(consumer) is None
    consumer.close()
    add(broker)
    client.delete("emq:q:marker")  # of a worker that died before it fetched
    consumer = broker.consume("q", timeout=20)
    assert next(consumer) is not None
    consumer.close()


def test_a_job_that_comes_while_a_consumer_waits_after_a_fetch_is_fetched_at_once(client, broker):
    consumer = broker.consume("q", timeout=int(LONGEST_BLOCK * 1000))
    first: list[object] = []
    waiting = threading.Thread(target=lambda: first.append(next(consumer)))
    waiting.start()
    wait_until(lambda: blocked(client) == 1)
    add(broker)
    waiting.join(LONGEST_BLOCK - 1)
    assert first == [None]

    started = time.monotonic()
    assert next(consumer) is not None
    assert time.monotonic() < started + LONGEST_BLOCK - 1
    consumer.close()


@pytest.mark.parametrize(("may_name", "prefix"), [(True, "emq"), (True, "mine"), (False, "emq")])
def test_the_connection_that_blocks_has_the_name_of_a_worker(client, may_name, prefix):
    queue = f"named-{may_name}"
    own = client
    if not may_name:
        client.execute_command("ACL", "SETUSER", "nameless", "on", "nopass", "~*", *all_but("client|setname"))
        kwargs = client.connection_pool.connection_kwargs
        own = redis.Redis(host=kwargs["host"], port=kwargs["port"], username="nameless", password="x")
    consumer = EchoMQBroker(client=own, middleware=[], prefix=prefix).consume(queue, timeout=20)

    assert next(consumer) is None
    name = f"{prefix}:{base64.b64encode(queue.encode()).decode()}:w:{WORKER}"
    assert (name in [each["name"] for each in client.client_list()]) == may_name
    consumer.close()


def test_the_end_of_a_worker_ends_its_block_at_once(client, broker):
    consumer = broker.consume("q", timeout=10_000)
    waiting = threading.Thread(target=next, args=[consumer])
    waiting.start()
    wait_until(lambda: blocked(client) == 1)

    consumer.timeout = 0.01
    broker.emit_before("worker_shutdown", None)
    waiting.join(LONGEST_BLOCK - 1)
    assert not waiting.is_alive()
    next(consumer)

    wait_until(lambda: blocked(client) == 0)
    add(broker)
    assert client.zcard("emq:q:marker") == 1
    consumer.close()


def drain(consumer) -> None:
    consumer.timeout = 0.01
    consumer.broker.emit_before("worker_shutdown", None)
    next(consumer)


@pytest.mark.parametrize("end", [lambda consumer: consumer.close(), drain], ids=["closes", "drains"])
@pytest.mark.parametrize("seen", ["nothing", "an answer", "a marker"])
def test_a_consumer_leaves_the_marker_to_others_whatever_it_has_seen_of_it_when_it(
    client, broker, monkeypatch, seen, end
):
    """The answer may be on its way. Without the marker, others would find the job when their own blocks end."""
    consumer = broker.consume("q", timeout=20)
    if seen == "a marker":
        consumer.timeout = LONGEST_BLOCK
        waiting = threading.Thread(target=next, args=[consumer])
        waiting.start()
        wait_until(lambda: blocked(client) == 1)
        add(broker)
        waiting.join()
    else:
        next(consumer)
        add(broker)
        if seen == "nothing":
            monkeypatch.setattr(redis.connection.AbstractConnection, "can_read", lambda *_, **__: False)
    assert client.zcard("emq:q:marker") == 0

    end(consumer)

    assert client.zcard("emq:q:marker") == 1
    consumer.close()


def test_when_a_worker_ends_another_learns_of_the_delayed_job_that_only_the_first_knew_of(client, broker):
    other = EchoMQBroker(client=client, middleware=[])
    first, second = broker.consume("q", timeout=20), other.consume("q", timeout=int(LONGEST_BLOCK * 1000))
    assert next(first) is None
    found: list[object] = []

    def look():
        while not found:
            found.extend(filter(None, [next(second)]))

    waiting = threading.Thread(target=look, daemon=True)
    waiting.start()
    wait_until(lambda: blocked(client) == 2)
    add(broker, delay=60_000)
    assert next(first) is None
    assert first.channel.due_in > 0  # the marker was its own

    first.close()

    wait_until(lambda: second.channel.due_in > 0, LONGEST_BLOCK - 1)
    add(broker)
    waiting.join(20)
    assert found
    second.close()


def test_a_consumer_that_is_cut_off_leaves_the_marker_that_it_may_have_taken(client):
    """Dramatiq waits for 3 s before it consumes again, and others for the marker."""
    with LossyProxy(client.connection_pool.connection_kwargs["port"]) as proxy:
        proxy.lose(b"BZPOPMIN")
        own = EchoMQBroker(client=redis.Redis(port=proxy.port), middleware=[])
        consumer = own.consume("q", timeout=20)
        assert next(consumer) is None
        add(own)
        consumer.timeout = 20
        with pytest.raises(ConnectionClosed):
            next(consumer)
        assert client.zcard("emq:q:marker") == 0

        consumer.close()

        assert client.zcard("emq:q:marker") == 1
        own.close()


def test_a_worker_that_ends_does_not_wait_for_a_server_that_is_silent(client):
    with LossyProxy(client.connection_pool.connection_kwargs["port"]) as proxy:
        own = EchoMQBroker(client=redis.Redis(port=proxy.port, socket_timeout=60), middleware=[])
        consumer = own.consume("q", timeout=20)
        assert next(consumer) is None
        proxy.silent.set()
        started = time.monotonic()

        consumer.close()

        assert time.monotonic() < started + 10
        own.close()


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
