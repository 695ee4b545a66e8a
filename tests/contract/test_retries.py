"""Dramatiq's contract: retries."""

from __future__ import annotations

import time

import dramatiq
import pytest
from dramatiq.errors import RateLimitExceeded, Retry
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import StubBackend

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working
from ..support.job_data import FAST, finished
from ..support.queue_data import state


def test_an_actor_that_fails_is_retried_until_it_succeeds(client, full_broker):
    @dramatiq.actor(broker=full_broker, **FAST)
    def work():
        calls.append(time.monotonic())
        if len(calls) < 4:
            raise RuntimeError("not yet")

    calls: list[float] = []
    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert len(calls) == 4
    assert finished(client) == (4, 0)


def test_every_retry_is_a_job_of_its_own_with_the_same_message_id(client, full_broker):
    @dramatiq.actor(broker=full_broker, max_retries=2, **FAST)
    def work():
        raise RuntimeError("never")

    message = work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    jobs = [client.hgetall(f"emq:default:{name}") for name in state(client, "default") if len(name) == 36]
    messages = [dramatiq.Message.decode(job[b"data"]) for job in jobs]
    assert len(messages) == 3
    assert {message.message_id for message in messages} == {message.message_id}
    assert sorted(message.options.get("retries", 0) for message in messages) == [0, 1, 2]
    assert finished(client) == (2, 1)


@pytest.mark.parametrize(("max_retries", "calls"), [(0, 1), (3, 4)])
def test_an_actor_that_goes_on_failing_ends_in_failed(client, full_broker, max_retries, calls):
    @dramatiq.actor(broker=full_broker, max_retries=max_retries, **FAST)
    def work():
        seen.append(1)
        raise RuntimeError("it broke")

    seen: list[int] = []
    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert len(seen) == calls
    assert finished(client) == (calls - 1, 1)
    [job_id] = client.zrange("emq:default:failed", 0, -1)
    assert client.hget(f"emq:default:{job_id.decode()}", "failedReason") == b"RuntimeError: it broke"
    assert b"RuntimeError: it broke" in client.hget(f"emq:default:{job_id.decode()}", "stacktrace")


def test_retries_of_a_message_may_be_fewer_than_its_actors(client, full_broker):
    @dramatiq.actor(broker=full_broker, max_retries=9, **FAST)
    def work():
        raise RuntimeError("it broke")

    work.send_with_options(max_retries=1)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (1, 1)


def test_an_exception_that_an_actor_throws_is_not_retried(client, full_broker):
    @dramatiq.actor(broker=full_broker, throws=(KeyError,), **FAST)
    def work():
        raise KeyError("expected")

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (0, 1)


def test_retry_when_decides_about_retries(client, full_broker):
    @dramatiq.actor(broker=full_broker, retry_when=lambda retries, exception: retries < 2, **FAST)
    def work():
        raise RuntimeError("it broke")

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (2, 1)


def test_a_retry_exception_says_when_to_try_again(full_broker):
    @dramatiq.actor(broker=full_broker, max_retries=1)
    def work():
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise Retry(delay=150)

    calls: list[float] = []
    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert 0.15 <= calls[1] - calls[0] < 14  # and not the backoff of Retries


def test_on_retry_exhausted_is_told(full_broker):
    @dramatiq.actor(broker=full_broker)
    def told(message, retries):
        seen.append((message["actor_name"], retries))

    @dramatiq.actor(broker=full_broker, max_retries=1, on_retry_exhausted="told", **FAST)
    def work():
        raise RuntimeError("it broke")

    seen: list = []
    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == [("work", {"retries": 1, "max_retries": 1})]


def test_a_rate_limit_lets_all_through_one_after_the_other(full_broker):
    limiter = ConcurrentRateLimiter(StubBackend(), "one", limit=1, ttl=10_000)

    @dramatiq.actor(broker=full_broker, max_retries=None, **FAST)
    def work(number):
        with limiter.acquire():
            running.append(number)
            assert len(running) == 1
            time.sleep(0.01)
            running.remove(number)
            done.append(number)

    running: list[int] = []
    done: list[int] = []
    for number in range(6):
        work.send(number)

    with working(full_broker, worker_threads=3):
        full_broker.join("default", timeout=20_000)

    assert sorted(done) == list(range(6))


def test_a_rate_limit_that_is_exceeded_ends_in_failed_without_retries(client, full_broker):
    @dramatiq.actor(broker=full_broker, max_retries=0)
    def work():
        raise RateLimitExceeded("too fast")

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (0, 1)


def test_a_failure_that_retries_cannot_deal_with_is_a_failed_job(client, full_broker):
    """Dramatiq logs what its middleware raises, and goes on to ack the message."""

    def raises(retries, exception):
        raise KeyError("a bug in the predicate")

    @dramatiq.actor(broker=full_broker, retry_when=raises)
    def work():
        raise RuntimeError("it broke")

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert finished(client) == (0, 1)
    [job_id] = client.zrange("emq:default:failed", 0, -1)
    assert client.hget(f"emq:default:{job_id.decode()}", "failedReason") == b"RuntimeError: it broke"


def test_without_retries_a_failure_is_done_as_dramatiq_says(client):
    broker = EchoMQBroker(client=client, middleware=[])

    @dramatiq.actor(broker=broker)
    def work():
        raise RuntimeError("it broke")

    work.send()

    with working(broker):
        broker.join("default", timeout=20_000)
    broker.close()

    assert finished(client) == (1, 0)
