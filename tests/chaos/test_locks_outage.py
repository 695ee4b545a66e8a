"""Locks while Redis is away."""

from __future__ import annotations

import time

import pytest
import redis

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import lines
from ..support.job_data import JOB, add, take
from ..support.job_thread import InAThread
from ..support.queue_data import put
from ..support.servers import wait_until


@pytest.fixture
def held(client, broker):
    """A job that the broker's process holds."""
    put(client, wait=["a"], jobs={"a": JOB})
    return take(broker)[1][0]


class Outage:
    """Redis is away for the renewals of a broker, and time passes as told."""

    def __init__(self, broker: EchoMQBroker, monkeypatch) -> None:
        self.broker, self.monkeypatch, self.passed = broker, monkeypatch, 0.0
        real = time.monotonic
        monkeypatch.setattr("dramatiq_echomq.broker.lock_renewer.time.monotonic", lambda: real() + self.passed)

    def start(self) -> None:
        self.execute_command = self.broker.locks.clients.usual.execute_command
        self.monkeypatch.setattr(self.broker.locks.clients.usual, "execute_command", self.away)

    def end(self) -> None:
        self.monkeypatch.setattr(self.broker.locks.clients.usual, "execute_command", self.execute_command)

    def away(self, *_, **__):
        raise redis.TimeoutError("Redis is away")


def test_a_short_outage_loses_nothing_and_is_logged_once(client, broker, held, monkeypatch, caplog):
    caplog.set_level("INFO")
    outage = Outage(broker, monkeypatch)
    outage.start()
    broker.locks.renew()
    outage.passed = 20
    broker.locks.renew()
    outage.end()
    broker.locks.renew()

    assert not held.job.is_lost
    assert not broker.locks.is_cut_off
    assert lines(caplog) == [
        "Locks cannot be renewed for now: TimeoutError: Redis is away",
        "Locks are renewed again.",
    ]


def test_all_locks_count_as_lost_after_an_outage_of_a_lock_duration(client, broker, held, monkeypatch):
    running = InAThread(broker, held)
    outage = Outage(broker, monkeypatch)
    outage.start()
    broker.locks.renew()

    outage.passed = 31
    broker.locks.renew()

    wait_until(lambda: running.interrupts)
    running.end()
    assert held.job.is_lost
    assert not broker.in_flight.all()


def test_no_job_is_taken_until_redis_answers_the_renewals_again(client, broker, held, monkeypatch):
    outage = Outage(broker, monkeypatch)
    outage.start()
    broker.locks.renew()
    outage.passed = 31
    broker.locks.renew()
    add(broker)

    assert broker.locks.is_cut_off
    assert take(broker)[1] == []
    outage.end()
    broker.locks.renew()

    assert len(take(broker)[1]) == 1


@pytest.mark.parametrize(("lock_duration", "longest"), [(30_000, 5), (2_000, 0.5)])
def test_renewals_have_a_connection_of_their_own_that_gives_up_well_before_a_lock_ends(client, lock_duration, longest):
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=lock_duration)
    parameters = broker.locks.clients.usual.connection_pool.connection_kwargs

    assert broker.locks.clients.usual.connection_pool is not client.connection_pool
    assert parameters["socket_timeout"] == parameters["socket_connect_timeout"] == longest
    assert parameters["retry"].seconds == longest  # for which it tries again: the next round comes soon
