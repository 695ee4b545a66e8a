"""Declaring queues, connecting and closing."""

from __future__ import annotations

import dramatiq
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import EchoMQBroker, QueueCounts

from ..support.job_data import add, id_of, take
from ..support.queue_data import state
from ..support.servers import free_port, wait_until


def test_declared_queues_are_a_copy(broker):
    broker.declare_queue("q")

    broker.get_declared_queues().add("other")

    assert broker.get_declared_queues() == {"q"}
    assert broker.get_declared_delay_queues() == set()


def test_a_queue_is_declared_once(broker):
    class Declared(dramatiq.Middleware):
        queues: list[str] = []  # noqa: RUF012

        def after_declare_queue(self, broker, queue_name):
            self.queues.append(queue_name)

    broker.add_middleware(Declared())
    for queue in ("q", "q", "other"):
        broker.declare_queue(queue)

    assert Declared.queues == ["q", "other"]


def test_neither_the_constructor_nor_declarations_nor_consumers_connect():
    """Nobody listens on this port."""
    broker = EchoMQBroker(port=free_port(), retry=Retry(NoBackoff(), 0))

    broker.declare_queue("q")
    dramatiq.actor(broker=broker, queue_name="q")(lambda: None)
    consumer = broker.consume("q")
    consumer.close()
    broker.close()

    with pytest.raises(redis.ConnectionError):
        add(broker)


def test_the_namespace_is_the_prefix(client):
    broker = EchoMQBroker(client=client, prefix="mine", middleware=[])

    job = add(broker)

    assert (broker.namespace, broker.client) == ("mine", client)
    assert state(client, prefix="mine")["wait"] == [id_of(job)]
    assert all(name.startswith(b"mine:q:") for name in client.scan_iter())


@pytest.mark.parametrize("decode", [False, True])
def test_clients_with_decoded_responses_do_the_same(client, decode):
    broker = EchoMQBroker(client=redis.Redis.from_url(url_of(client), decode_responses=decode), middleware=[])
    first, second = add(broker, 1), add(broker, "ü", broker_priority=1)

    consumer, messages = take(broker, 3)
    assert [(id_of(message), message.args) for message in messages] == [(id_of(first), (1,)), (id_of(second), ("ü",))]
    consumer.ack(messages[0])
    consumer.nack(messages[1])
    assert broker.retry("q", id_of(second))
    consumer.requeue(take(broker, 2)[1])

    assert broker.get_queue_message_counts("q") == QueueCounts(0, 0, 0, 1, 0, 1, 0)
    broker.locks.renew()
    broker.flush("q")
    assert list(client.scan_iter()) == [b"emq:q:meta"]
    broker.close()
    broker.client.close()


def url_of(client) -> str:
    parameters = client.connection_pool.connection_kwargs
    return f"redis://{parameters['host']}:{parameters['port']}/{parameters['db']}"


def connections(client) -> set[str]:
    return {connection["id"] for connection in client.client_list()}


def test_close_closes_what_the_broker_opened_and_may_be_called_twice(client, broker):
    add(broker)
    before = connections(client)
    consumer, [message] = take(broker)
    broker.emit_before("process_message", message)
    broker.locks.renew()
    opened = connections(client) - before
    assert len(opened) >= 2

    consumer.close()
    broker.close()
    broker.close()

    wait_until(lambda: not opened & connections(client))
    consumer.ack(message)  # which connects anew
