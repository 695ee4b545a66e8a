"""Locks: renewed in time, and got back within the grace pass."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from dramatiq_echomq import EchoMQBroker, StalledChecker, StalledSignals

from ..support.brokers import lines
from ..support.job_data import JOB, take
from ..support.queue_data import put, state
from ..support.servers import wait_until


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

    assert client.pttl("emq:q:a:lock") > 20_000
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
        client.pexpire(lock, 1_000)

    broker.locks.renew()

    assert all(duration * 0.3 < client.pttl(lock) <= duration for lock, duration in locks.items())


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


def test_a_worker_that_starts_while_the_last_renewal_hangs_has_one_lock_thread(client, monkeypatch):
    broker = EchoMQBroker(client=client, middleware=[], lock_duration=1_000)
    hangs, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(broker.locks, "renew", lambda: hangs.set() or go_on.wait(20))
    broker.locks.start()
    assert hangs.wait(20)
    with monkeypatch.context() as patch:
        patch.setattr("dramatiq_echomq.broker.lock_timer.LONGEST_STOP", 0)
        broker.locks.stop()

    broker.locks.start()
    go_on.set()

    wait_until(lambda: len(lock_threads()) == 2)
    broker.locks.stop()
    assert not lock_threads()


def test_the_lock_manager_renews_four_times_per_lock_from_worker_boot_to_shutdown(client):
    renewals = Renewals()
    broker = EchoMQBroker(client=client, middleware=[renewals], lock_duration=4_000)
    put(client, wait=["a"], jobs={"a": JOB})
    started = time.monotonic()

    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    take(broker)
    wait_until(lambda: len(renewals.smallest_ttls) >= 2)
    assert time.monotonic() - started > 0.9
    assert broker.locks.seconds_per_round() == 1
    wait_until(lambda: state(client)["locks"] == {"a"})
    broker.emit_before("worker_shutdown", None)
    so_far = len(renewals.smallest_ttls)
    wait_until(lambda: len(renewals.smallest_ttls) > so_far, message="there was no renewal while the worker drains")
    broker.emit_after("worker_shutdown", None)

    assert lock_threads() == []
    client.pexpire("emq:q:a:lock", 1)
    wait_until(lambda: state(client)["locks"] == set())
    broker.close()


def lock_threads() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name in ("dramatiq-echomq-locks", "dramatiq-echomq-renewals")
    ]


def test_a_short_lock_that_is_taken_in_a_long_pause_is_renewed_in_time(client, monkeypatch):
    """The thread waits by the longest lock until it is told of a shorter one."""
    monkeypatch.setattr("dramatiq_echomq.broker.renewal_clients.LONGEST_RENEWAL", 60.0)
    renewals = Renewals()
    broker = EchoMQBroker(client=client, middleware=[renewals], lock_duration=240_000)
    has_begun, renew = threading.Event(), broker.locks.renew
    monkeypatch.setattr(broker.locks, "renew", lambda: (renew(), has_begun.set()))
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    assert has_begun.wait(20)  # with a round that is made at once
    put(client, wait=["a"], jobs={"a": {**JOB, "opts": '{"lockDuration": 8000}'}})

    take(broker)

    wait_until(lambda: renewals.smallest_ttls)  # and not only after the minute of a longer one
    wait_until(lambda: state(client)["locks"] == {"a"})
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
    assert 15_000 < first <= 20_000
    assert 0 < second <= 9_000
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


def test_a_lock_that_is_renewed_late_is_warned_of_once(client, broker, caplog):
    put(client, wait=["a"], jobs={"a": {**JOB, "opts": '{"lockDuration": 60000}'}})
    take(broker)

    for _ in range(3):
        client.pexpire("emq:q:a:lock", 20_000)
        broker.locks.renew()

    [line] = lines(caplog, "WARNING")
    assert "of its 60000 ms left when it was renewed" in line
