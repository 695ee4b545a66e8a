"""Rate limits that BullMQ 5 and 6 set hold for Dramatiq workers, and what these fetch counts for BullMQ's."""

from __future__ import annotations

import time
from itertools import pairwise

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working
from ..support.job_data import add, fetched_at, take
from ..support.peer import is_idle
from ..support.servers import wait_until


@pytest.fixture(params=["node", "node6"])
def peer(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def ran():
    return []


@pytest.fixture
def broker(client, ran):
    broker = EchoMQBroker(client=client, middleware=[])
    dramatiq.actor(lambda: ran.append(time.monotonic()), actor_name="work", queue_name="q", broker=broker)
    yield broker
    broker.close()


def test_a_global_rate_limit_holds(client, peer, broker):
    peer.run('await queue("q").setGlobalRateLimit(1, 300)')
    for _ in range(3):
        add(broker)
    with working(broker):
        wait_until(lambda: client.zcard("emq:q:completed") == 3)
    assert all(later - earlier > 280 for earlier, later in pairwise(fetched_at(client)))


def test_a_global_rate_limit_that_is_removed_holds_no_longer(peer, broker, ran):
    peer.run('await queue("q").setGlobalRateLimit(1, 60000)')
    for _ in range(3):
        add(broker)
    with working(broker):
        wait_until(lambda: len(ran) == 1)
        peer.run('await queue("q").removeGlobalRateLimit(); await queue("q").removeRateLimitKey()')
        wait_until(lambda: len(ran) == 3)


@pytest.mark.parametrize("before", ["await null", 'await queue("q").setGlobalRateLimit(1000, 1000)'])
def test_a_rate_limit_that_is_set_for_a_time_holds(peer, broker, ran, before):
    start = time.monotonic()
    peer.run(f'{before}; await queue("q").rateLimit(500)')
    add(broker)
    with working(broker):
        wait_until(lambda: ran)
    assert ran[0] - start > 0.45


def test_what_dramatiq_fetches_counts_for_workers_of_bullmq(client, peer, broker):
    peer.run('await queue("q").setGlobalRateLimit(2, 60000)')
    for _ in range(3):
        add(broker)
    take(broker, 2)

    assert 50_000 < peer.run('return queue("q").getRateLimitTtl()') <= 60_000
    with peer.worker("q", "finish") as worker:
        worker.wait_for("ready")
        wait_until(lambda: client.llen("emq:q:wait") == 1)
        time.sleep(0.2)
        assert not [said for said in worker.said if said[0] == "took"]


def test_what_workers_of_bullmq_fetch_counts_for_dramatiq(client, peer, broker, ran):
    peer.run('await queue("q").setGlobalRateLimit(2, 60000)')
    with peer.worker("q", "finish") as worker:
        worker.wait_for("ready")
        wait_until(lambda: is_idle(client))
        for _ in range(2):
            add(broker)
        wait_until(lambda: sum(said[0] == "completed" for said in worker.said) == 2)
    add(broker)

    assert take(broker)[1] == []
    assert client.llen("emq:q:wait") == 1
