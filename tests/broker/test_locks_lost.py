"""Locks that are lost: what becomes of the job, and of the thread that runs it."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from unittest import mock

import pytest
import redis

from dramatiq_echomq import EchoMQBroker, LockLost

from ..support.brokers import lines
from ..support.job_data import JOB, id_of, take
from ..support.job_thread import InAThread
from ..support.lost_jobs import back_in_wait, removed, taken_by_another
from ..support.queue_data import put, state
from ..support.servers import wait_until


def recovered_and_taken_and_frozen(client):
    back_in_wait(client)
    take(EchoMQBroker(client=client, middleware=[]))
    client.delete("emq:q:a:lock")


LOST = pytest.mark.parametrize("lose", [back_in_wait, recovered_and_taken_and_frozen, taken_by_another, removed])


@LOST
def test_a_renewal_changes_nothing_for_an_owner_whose_job_was(client, broker, held, lose, caplog):
    lose(client)
    before = state(client)
    caplog.clear()

    broker.locks.renew()
    broker.locks.renew()

    assert state(client) == before
    assert held.job.is_lost
    [line] = lines(caplog, "WARNING")
    assert line.startswith("Lost the lock of job 'a' of queue 'q'")


def test_a_job_that_its_own_process_took_again_is_lost_once(client, broker, held):
    back_in_wait(client)
    taken_again = next(broker.consume("q", prefetch=2, timeout=1))

    broker.locks.renew()

    assert (held.job.is_lost, taken_again.job.is_lost) == (True, False)


def test_what_one_worker_could_not_give_back_the_next_one_does_not_run(client, broker, monkeypatch):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=2))
    consumer = broker.consume("q", prefetch=2, timeout=1)
    assert id_of(next(consumer)) == "a"
    monkeypatch.setattr(broker.channel("q").queue, "requeue", mock.Mock(side_effect=redis.ConnectionError))
    consumer.close()
    broker.emit_before("worker_shutdown", None)
    broker.emit_after("worker_shutdown", None)

    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))

    assert next(broker.consume("q", prefetch=2, timeout=1)) is None
    broker.emit_after("worker_shutdown", None)


def test_a_lost_job_that_waits_in_memory_is_dropped(client, broker):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))
    consumer = broker.consume("q", prefetch=3, timeout=1)
    assert id_of(next(consumer)) == "a"
    client.set("emq:q:b:lock", "of another worker")

    broker.locks.renew()

    assert id_of(next(consumer)) == "c"
    assert next(consumer) is None


def test_a_lost_job_that_runs_has_lock_lost_raised_in_its_thread_once(client, broker, held):
    running = InAThread(broker, held)
    taken_by_another(client)

    broker.locks.renew()
    wait_until(lambda: running.interrupts)
    broker.locks.renew()
    running.end()

    assert [type(interrupt) for interrupt in running.interrupts] == [LockLost]


@pytest.mark.parametrize("raised", [None, ValueError("it broke")], ids=["returned", "raised"])
def test_an_interrupt_that_meets_the_end_of_a_job_ends_no_thread_and_blocks_none(broker, held, raised):
    ends, started, may_end = [], threading.Event(), threading.Event()

    def run():
        broker.emit_before("process_message", held)
        started.set()
        may_end.wait()
        if raised:
            held.stuff_exception(raised)
        broker.emit_after("process_message", held, exception=raised)
        ends.append("the end")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(20)
    with broker.in_flight.mutex:
        may_end.set()
        time.sleep(0.1)  # by now the thread waits to say that its job ends
        assert held.job.lose()
    thread.join(20)

    assert ends == ["the end"]
    assert broker.in_flight.mutex.acquire(timeout=5)


def test_a_job_whose_actor_has_raised_is_not_interrupted(client, broker, held):
    """Dramatiq logs the exception next, and nothing would catch an interrupt there."""
    running = InAThread(broker, held)
    held.stuff_exception(ValueError("it broke"))
    taken_by_another(client)

    broker.locks.renew()

    running.end()
    assert (running.interrupts, held.job.is_lost) == ([], False)


def test_a_job_that_runs_well_is_not_interrupted(client, broker, held):
    running = InAThread(broker, held)

    for _ in range(3):
        broker.locks.renew()
    running.end()

    assert running.interrupts == []
    assert state(client)["locks"] == {"a"}


def test_a_job_whose_thread_died_is_renewed_no_more(client, broker, held, caplog):
    running = InAThread(broker, held)
    running.end()
    client.pexpire("emq:q:a:lock", 20_000)

    broker.locks.renew()

    assert client.pttl("emq:q:a:lock") <= 20_000
    assert lines(caplog, "WARNING") == ["The thread of job 'a' died. Its lock ends."]
    assert not broker.in_flight.all()
