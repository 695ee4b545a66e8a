"""The counter of the ids of BullMQ's jobs, `id`, holds no number to count on: no job gets lost for that."""

from __future__ import annotations

import pytest

from dramatiq_echomq.migration import move_from_redis_broker

from ..support.job_data import message
from ..support.old_messages import arguments, send
from ..support.queue_data import put, state

ODD = ["a stranger's", "1.5", " 1", str(2**63 - 1), "9" * 30]

pytestmark = pytest.mark.parametrize("odd", ODD)


def test_what_is_sent_is_added_once_and_the_sender_knows(client, broker, odd):
    put(client, id=odd)

    broker.enqueue(message(1))
    broker.enqueue_many([message(2), message(3)])

    assert arguments(client) == [1, 2, 3]
    assert state(client)["id"] == odd


def test_what_is_moved_from_another_broker_is_there_after_it(client, old_broker, broker, odd):
    put(client, id=odd)
    send(old_broker, 1, 2)

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.moved, move.left) == (2, 0)
    assert arguments(client) == [1, 2]


def test_a_scheduler_goes_on(client, broker, odd):
    put(client, id=odd, wait=["repeat:s:5"], jobs={"repeat:s:5": {"rjk": "s"}}, repeat={"s": 5})
    put(client, **{"repeat:s": {"name": "work", "every": "1000", "ic": "1"}})

    assert next(broker.consume("q", prefetch=1, timeout=50)).job.job_id == "repeat:s:5"

    [following] = state(client)["delayed"]
    assert state(client)["repeat:s"]["ic"] == "2"
    assert following in state(client)
