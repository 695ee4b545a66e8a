"""Locks: renewed, lost, and got back within the grace pass."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from unittest import mock

import pytest
import redis

from dramatiq_echomq import EchoMQBroker, LockLost, StalledChecker, StalledSignals

from ..support.brokers import lines
from ..support.job_data import id_of, take
from ..support.job_thread import InAThread
from ..support.queue_data import put, state
from ..support.servers import wait_until

JOB = {"name": "work", "data": "[]"}


@pytest.fixture
def held(client, broker):
    """A job that the broker's process holds."""
    put(client, wait=["a"], jobs={"a": JOB})
    return take(broker)[1][0]


class Renewals(StalledSignals):
    def __init__(self) -> None:
        self.smallest_ttls: list[int] = []

    def after_locks_renewed(self, broker, *, smallest_ttl):
        self.smallest_ttls.append(smallest_ttl)


def test_a_renewal_gives_a_lock_its_full_time_and_removes_the_mark(client, broker, held):
    put(client, stalled={"a", "other"})
    client.pexpire("emq:q:a:lock", 20_000)
    token = client.get("emq:q:a:lock")

    broker.locks.renew()

    assert client.pttl("emq:q:a:lock") > 29_000
    assert client.get("emq:q:a:lock") == token
    assert state(client)["stalled"] == {"other"}


def test_one_call_renews_all_locks_of_a_queue(client, broker):
    put(client, wait=[*"abc"], jobs=dict.fromkeys("abc", JOB))
    take(broker, 3)
    broker.locks.renew()
    before = client.info("commandstats")["cmdstat_evalsha"]["calls"]

    broker.locks.renew()

    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 1


def test_jobs_of_several_queues_and_lock_durations_are_renewed(client, broker):
    put(client, wait=["b", "a"], jobs={"a": JOB, "b": {**JOB, "opts": '{"lockDuration": 5000}'}})
    put(client, "other", wait=["c"], jobs={"c": JOB})
    take(broker, 2), take(broker, queue="other")
    locks = {"emq:q:a:lock": 30_000, "emq:q:b:lock": 5_000, "emq:other:c:lock": 30_000}
    for lock in locks:
        client.pexpire(lock, 3_000)

    broker.locks.renew()

    assert all(duration - 1_000 < client.pttl(lock) <= duration for lock, duration in locks.items())


def test_nothing_is_asked_of_redis_while_no_job_is_held(broker, monkeypatch):
    monkeypatch.setattr(broker.locks.clients.usual, "execute_command", lambda *_, **__: pytest.fail("Redis was asked"))

    broker.locks.renew()


@pytest.mark.parametrize("marks", [set(), {"a"}], ids=["unmarked", "marked"])
def test_an_owner_that_was_only_paused_comes_back_within_the_grace_pass(client, broker, held, marks):
    token = client.get("emq:q:a:lock")
    client.delete("emq:q:a:lock")
    if marks:
        StalledChecker(client).check("q")
        assert state(client)["stalled"] == {"a"}

    broker.locks.renew()

    assert client.get("emq:q:a:lock") == token
    assert "stalled" not in state(client)
    assert not held.job.is_lost


def recovered(client):
    client.delete("emq:q:a:lock")
    StalledChecker(client).check("q")
    StalledChecker(client).check("q")


def recovered_and_taken_and_frozen(client):
    recovered(client)
    take(EchoMQBroker(client=client, middleware=[]))
    client.delete("emq:q:a:lock")


def taken_by_another(client):
    client.set("emq:q:a:lock", "of another worker", px=50_000)


def removed(client):
    client.delete("emq:q:a:lock", "emq:q:a", "emq:q:active")


LOST = pytest.mark.parametrize("lose", [recovered, recovered_and_taken_and_frozen, taken_by_another, removed])


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
    recovered(client)
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


def test_a_worker_that_starts_while_the_last_renewal_hangs_has_one_lock_thread(client, monkeypatch):
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=100)
    hangs, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(broker.locks, "renew", lambda: hangs.set() or go_on.wait(10))
    broker.locks.start()
    assert hangs.wait(10)
    for thread in broker.locks._timer._threads:
        monkeypatch.setattr(thread, "join", lambda timeout: None)
    broker.locks.stop()

    broker.locks.start()
    go_on.set()

    wait_until(lambda: len(lock_threads()) == 2)
    broker.locks.stop()
    assert not lock_threads()


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
    ends, begun, may_end = [], threading.Event(), threading.Event()

    def run():
        broker.emit_before("process_message", held)
        begun.set()
        may_end.wait()
        if raised:
            held.stuff_exception(raised)
        broker.emit_after("process_message", held, exception=raised)
        ends.append("the end")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(10)
    with broker.in_flight.mutex:
        may_end.set()
        time.sleep(0.1)  # by now the thread waits to say that its job ends
        assert held.job.lose()
    thread.join(10)

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
    assert broker.in_flight.count("q") == 0


def test_the_lock_manager_renews_four_times_per_lock_from_worker_boot_to_shutdown(client):
    renewals = Renewals()
    broker = EchoMQBroker(client=client, middleware=[renewals], lock_duration=400)
    put(client, wait=["a"], jobs={"a": JOB})
    started = time.monotonic()

    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    take(broker)
    wait_until(lambda: len(renewals.smallest_ttls) >= 8)
    assert 0.6 < time.monotonic() - started < 4
    assert state(client)["locks"] == {"a"}
    broker.emit_before("worker_shutdown", None)
    so_far = len(renewals.smallest_ttls)
    wait_until(lambda: len(renewals.smallest_ttls) > so_far, message="there was no renewal while the worker drains")
    broker.emit_after("worker_shutdown", None)

    wait_until(lambda: state(client)["locks"] == set())
    assert lock_threads() == []
    broker.close()


def lock_threads() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name in ("dramatiq-echomq-locks", "dramatiq-echomq-renewals")
    ]


def test_a_short_lock_that_is_taken_in_a_long_pause_is_renewed_in_time(client):
    """The thread waits by the longest lock until it is told of a shorter one."""
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=60_000)
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    put(client, wait=["a"], jobs={"a": {**JOB, "opts": '{"lockDuration": 400}'}})

    take(broker)

    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        assert state(client)["locks"] == {"a"}
    broker.emit_after("worker_shutdown", None)
    broker.close()


def test_the_smallest_ttl_is_told_and_a_late_renewal_is_logged(client, caplog):
    renewals = Renewals()
    broker = EchoMQBroker(client=client, middleware=[renewals])
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    take(broker, 2)

    client.pexpire("emq:q:a:lock", 20_000)
    broker.locks.renew()
    assert lines(caplog, "WARNING") == []
    client.pexpire("emq:q:b:lock", 9_000)
    broker.locks.renew()

    first, second = renewals.smallest_ttls
    assert 19_000 < first <= 20_000
    assert 8_000 < second <= 9_000
    [line] = lines(caplog, "WARNING")
    assert f"had {second} of its 30000 ms left" in line
    broker.close()


def test_a_lock_that_came_back_is_told_as_one_with_nothing_left(client, caplog):
    renewals = Renewals()
    broker = EchoMQBroker(client=client, middleware=[renewals])
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    take(broker, 2)
    client.delete("emq:q:b:lock")

    broker.locks.renew()

    assert renewals.smallest_ttls == [0]
    assert "had 0 of its 30000 ms left" in lines(caplog, "WARNING")[0]
    broker.close()


def test_a_very_short_lock_lasts_a_while_and_is_warned_of_once(client, broker, caplog):
    put(client, wait=["a"], jobs={"a": {**JOB, "opts": '{"lockDuration": 1}'}})
    take(broker)
    assert 100 < client.pttl("emq:q:a:lock") <= 250

    for _ in range(3):
        client.pexpire("emq:q:a:lock", 100)
        broker.locks.renew()

    [line] = lines(caplog, "WARNING")
    assert "of its 250 ms left when it was renewed" in line
