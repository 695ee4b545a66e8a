"""Children that are forked while a worker of the parent runs: what the parent holds is not theirs."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading

import dramatiq
import pytest
import redis

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working
from ..support.job_data import add, id_of, wait_until_renewed
from ..support.servers import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

LOCK = 8_000


@pytest.fixture
def busy(client):
    """A broker with one thread, which runs a job until it is let go, and jobs that say which process ran them."""
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=LOCK)
    let_go, url = threading.Event(), client.connection_pool.connection_kwargs

    @dramatiq.actor(broker=broker, queue_name="q", actor_name="hold")
    def hold():
        let_go.wait(30)

    @dramatiq.actor(broker=broker, queue_name="q", actor_name="work")
    def work(is_long):
        with redis.Redis(host=url["host"], port=url["port"], db=url["db"]) as own:
            if is_long:
                locks = own.keys("emq:q:*:lock")
                assert len(locks) == 2
                wait_until_renewed(own, *locks)
            own.rpush("ran", os.getpid())

    with working(broker):
        held = add(broker, actor="hold")
        wait_until(lambda: broker.in_flight.all() and client.llen("emq:q:active"))
        yield broker, id_of(held)
        let_go.set()
    broker.close()


def forked(target, *args) -> multiprocessing.Process:
    child = multiprocessing.get_context("fork").Process(target=target, args=args)
    child.start()
    return child


def work_until(broker: EchoMQBroker, number: int) -> None:
    """What a child does: it runs a worker until so many jobs have run."""
    assert broker.in_flight.all() == []
    with working(broker):
        wait_until(lambda: broker.client.llen("ran") == number)
        wait_until(lambda: broker.client.zcard("emq:q:completed") == number)


def test_a_worker_of_a_child_has_all_its_threads_and_renews_its_own_locks(client, busy):
    broker, _ = busy
    child = forked(work_until, broker, 1)
    add(broker, True)
    child.join(30)

    assert child.exitcode == 0
    assert client.lrange("ran", 0, -1) == [str(child.pid).encode()]


def test_the_jobs_of_the_parent_are_not_kept_by_its_children(client, busy, monkeypatch):
    """They must come back when the parent dies."""
    broker, held = busy
    monkeypatch.setattr(broker.locks, "renew", lambda: None)  # the parent is dead as far as its locks go
    child = forked(work_until, broker, 1)
    client.pexpire(f"emq:q:{held}:lock", 1)
    wait_until(lambda: not client.exists(f"emq:q:{held}:lock"))
    add(broker, False)
    child.join(30)

    assert child.exitcode == 0
    assert not client.exists(f"emq:q:{held}:lock")
    assert client.lrange("emq:q:active", 0, -1) == [held.encode()]


def test_what_a_thread_of_the_parent_has_locked_locks_no_child(client, busy):
    broker, _ = busy
    with broker.in_flight.mutex:
        child = forked(work_until, broker, 1)
    add(broker, False)
    child.join(30)

    assert child.exitcode == 0
