"""Dramatiq workers are seen by BullMQ, and so by dashboards."""

from __future__ import annotations

import os
import socket
import threading

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker, QueueInspector

from ..support.brokers import working
from ..support.servers import wait_until


@pytest.fixture(params=["node", "node6"])
def peer(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    for queue_name in ("seen", "näme"):
        broker.declare_queue(queue_name)
    yield broker
    broker.close()


@pytest.mark.parametrize("queue_name", ["seen", "näme"])
def test_each_queue_of_a_worker_counts_it(peer, broker, queue_name):
    assert peer.run(f'return queue("{queue_name}").getWorkersCount()') == 0
    with working(broker):
        wait_until(lambda: peer.run(f'return queue("{queue_name}").getWorkersCount()') == 1)
        [worker] = peer.run(f'return queue("{queue_name}").getWorkers()')
        assert worker["name"] == queue_name
    wait_until(lambda: peer.run(f'return queue("{queue_name}").getWorkersCount()') == 0)


def test_a_queue_without_a_worker_has_none(peer, broker):
    with working(broker):
        wait_until(lambda: peer.run('return queue("seen").getWorkersCount()') == 1)
        assert peer.run('return queue("another").getWorkersCount()') == 0


def test_a_worker_that_is_busy_from_the_start_is_seen(node, broker):
    done = threading.Event()
    actor = dramatiq.actor(lambda: done.wait(20), actor_name="work", queue_name="seen", broker=broker)
    for _ in range(4):
        actor.send()
    with working(broker):
        wait_until(lambda: broker.get_queue_message_counts("seen").active)
        assert node.run('return queue("seen").getWorkersCount()') == 1
        done.set()


def test_it_is_called_what_its_jobs_say(client, broker):
    broker.pause("seen")
    with working(broker):
        [worker] = wait_until(lambda: QueueInspector(client).queue("seen").workers)
        assert worker.name == f"{socket.gethostname()}:{os.getpid()}"
