"""A call that is sent again because its reply was lost counts once and has the same reply."""

from __future__ import annotations

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import StalledChecker

from ..support.proxy import LossyProxy, SendsTwice
from ..support.queue_data import put, state

pytestmark = pytest.mark.usefixtures("clock")

ODD = {"a": {"opts": "{"}, "b": {"stc": "1"}, "c": {"stc": "1", "opts": '{"rof": true}'}, "d": {}, "e": {}}
QUEUES = {
    "marks": {"active": ["b", "a"], "jobs": {"a": {}, "b": {}}},
    "recovers": {"active": ["b", "a"], "jobs": {"a": {}, "b": {}}, "stalled": {"a", "b"}},
    "fails": {"active": ["c", "b"], "jobs": ODD, "stalled": {"b", "c"}},
    "drops": {"active": ["x", "y", "z"], "stalled": {"x"}},
    "everything": {"active": ["e", "d", "x", "c", "b", "a", "a"], "jobs": ODD, "stalled": {"a", "b", "c", "d"}},
    "healthy": {"active": ["b", "a"], "jobs": {"a": {}, "b": {}}, "locks": ["a", "b"], "stalled": {"a", "b"}},
    "nothing": {},
}


def checks_and_state(client, plain_client, queue, *, method, batch_size):
    """What two checks of a queue reply, and what the queue is then."""
    plain_client.flushdb()
    put(plain_client, **queue)
    checker = StalledChecker(client, batch_size=batch_size)
    checks = []
    for _ in range(2):
        checks.append(getattr(checker, method)("q"))
        plain_client.delete("emq:q:stalled-check")
    return checks, state(plain_client)


@pytest.mark.parametrize("method", ["check", "sweep"])
@pytest.mark.parametrize("batch_size", [1, 2, 1000])
@pytest.mark.parametrize("queue", QUEUES.values(), ids=QUEUES)
def test_calls_that_are_sent_twice_count_once(client, queue, batch_size, method):
    once = checks_and_state(client, client, queue, method=method, batch_size=batch_size)
    twice = checks_and_state(SendsTwice(client), client, queue, method=method, batch_size=batch_size)

    assert twice == once


def test_a_sweep_that_is_sent_twice_is_not_throttled_by_itself(client):
    assert not StalledChecker(SendsTwice(client)).sweep("q").skipped
    assert StalledChecker(SendsTwice(client)).sweep("q").skipped


def test_two_checks_of_one_checker_are_two_checks(client):
    put(client, **QUEUES["marks"])
    checker = StalledChecker(client)

    assert (checker.check("q").marked, checker.check("q").recovered) == (2, 2)


@pytest.fixture
def proxy(client):
    with LossyProxy(client.connection_pool.connection_kwargs["port"]) as proxy:
        yield proxy


@pytest.mark.parametrize("retries", [0, 1], ids=["by the checker", "by redis-py"])
@pytest.mark.parametrize("queue", QUEUES.values(), ids=QUEUES)
def test_a_check_survives_a_reply_that_gets_lost(client, proxy, queue, retries):
    once = checks_and_state(client, client, queue, method="check", batch_size=2)
    lossy = redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), retries))

    proxy.lose(b"EVALSHA")
    assert checks_and_state(lossy, client, queue, method="check", batch_size=2) == once

    assert proxy.lost == [b"EVALSHA"]
    lossy.close()


def test_a_check_whose_last_word_gets_lost_still_tells_what_it_did(client, proxy):
    """The record of its last reply ends by itself."""
    put(client, **QUEUES["recovers"])
    lossy = redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 0))

    proxy.lose(b"UNLINK")
    assert StalledChecker(lossy).check("q").recovered == 2

    assert proxy.lost == [b"UNLINK"]
    lossy.close()
