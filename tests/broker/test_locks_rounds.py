"""In which order and how long locks are renewed, and that nothing ends the renewals."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
import redis

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import lines
from ..support.job_data import JOB, take
from ..support.queue_data import put, state
from ..support.servers import wait_until

SHORT = {**JOB, "opts": '{"lockDuration": 1000}'}


def test_a_queue_that_takes_the_time_of_a_round_comes_last_in_the_next_one(client, broker, held_jobs, monkeypatch):
    tried = []

    def slow(queue_name, *_):
        tried.append(queue_name)
        if queue_name == "bad":
            time.sleep(0.06)
            raise redis.TimeoutError
        return 30_000

    monkeypatch.setattr(type(broker.locks), "timeout", 0.05)
    monkeypatch.setattr(broker.locks, "renew_group", slow)
    for _ in range(3):
        broker.locks.renew()

    assert tried == ["bad", "good", "bad", "good", "bad"]


def test_the_lock_that_ends_first_is_renewed_first(client, broker, monkeypatch):
    put(client, "a", wait=["1"], jobs={"1": JOB})
    put(client, "b", wait=["1"], jobs={"1": SHORT})
    for queue in "ab":
        take(broker, queue=queue)

    assert [queue for (queue, _), _ in broker.locks.groups()] == ["b", "a"]


def test_the_timeout_follows_the_shortest_lock_that_is_held(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    put(client, "other", wait=["b"], jobs={"b": SHORT})
    take(broker)
    assert broker.locks.timeout == 5
    assert broker.locks.clients.with_timeout(broker.locks.timeout) is broker.locks.clients.usual

    consumer, [short] = take(broker, queue="other")
    assert broker.locks.timeout == 0.25
    quicker = broker.locks.clients.with_timeout(broker.locks.timeout)
    parameters = quicker.connection_pool.connection_kwargs
    assert parameters["socket_timeout"] == parameters["socket_connect_timeout"] == 5 / 32
    broker.locks.renew()
    assert broker.locks.clients.with_timeout(broker.locks.timeout) is quicker

    consumer.ack(short)
    assert broker.locks.clients.with_timeout(broker.locks.timeout) is broker.locks.clients.usual


def test_a_lock_is_renewed_while_middleware_hears_of_the_end_and_for_its_duration_while_redis_does_not(
    broker, held, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr("dramatiq_echomq.broker.in_flight.time", SimpleNamespace(monotonic=lambda: now[0]))

    def is_renewed_after(seconds: float) -> bool:
        now[0] += seconds
        return [group for _, group in broker.locks.groups()] == [[held.job]]

    held.job.finish()
    assert is_renewed_after(1_000)
    held.job.acknowledge()
    held.job.put_off()
    assert is_renewed_after(29)
    held.job.acknowledge()
    assert not is_renewed_after(2)


@pytest.mark.parametrize("lock_duration", [1_000, 30_000])
def test_a_renewal_that_hangs_loses_a_job_when_its_lock_ends_and_not_later(client, monkeypatch, caplog, lock_duration):
    """As a name that is looked up does, which no socket timeout ends."""
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=lock_duration)
    may_end = threading.Event()
    monkeypatch.setattr(broker.locks, "renew_group", lambda *_: may_end.wait(20) and 1)
    put(client, wait=["a"], jobs={"a": {**JOB, "opts": '{"lockDuration": 400}'}})
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    try:
        taken_at = time.monotonic()
        [job] = take(broker)[1]
        wait_until(lambda: job.job.is_lost)
        assert 0.4 <= time.monotonic() - taken_at < 5
        assert "Redis has not answered for 0.1 s" in lines(caplog, "WARNING")[0]
    finally:
        may_end.set()
        broker.emit_after("worker_shutdown", None)
        broker.close()


@pytest.mark.parametrize("where", ["renew", "seconds_per_round", "next_expiry", "groups"])
def test_no_unexpected_error_ends_the_renewals(client, monkeypatch, caplog, where):
    monkeypatch.setattr("dramatiq_echomq.broker.lock_timer.LONGEST_RETRY", 0.01)
    monkeypatch.setattr("dramatiq_echomq.broker.lock_renewer.ROUNDS_PER_LOCK", 40)
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=10_000)
    faulty = getattr(broker.locks, where)
    errors = iter([KeyError("odd")] * 2)

    def raises_at_first(*args):
        for error in errors:
            raise error
        return faulty(*args)

    monkeypatch.setattr(broker.locks, where, raises_at_first)
    rounds: list[int] = []
    monkeypatch.setattr(broker.locks, "report", rounds.append)
    put(client, wait=["a"], jobs={"a": JOB})
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    try:
        take(broker)
        wait_until(lambda: len(rounds) > 3)
        wait_until(lambda: state(client)["locks"] == {"a"})
    finally:
        broker.emit_after("worker_shutdown", None)
        broker.close()
    assert next(errors, None) is None
