"""What threads have to tell Redis at the same time goes together, and each hears what became of its own."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
import redis
from dramatiq.errors import ConnectionClosed
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.group_commit import GroupCommit, Part
from dramatiq_echomq.broker.jobs import Outcome
from dramatiq_echomq.broker.queue import Fetch, JobQueue
from dramatiq_echomq.protocol.keys import QueueKeys

from ..support.brokers import lines
from ..support.faults import Faults
from ..support.job_data import JOB, id_of, take
from ..support.proxy import LossyProxy, SendsTwice
from ..support.queue_data import put, state
from ..support.servers import wait_until


class Calls(GroupCommit):
    """Calls that wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Part]] = []
        self.errors: list[BaseException] = []
        self.may_go_on = threading.Semaphore(0)

    def send(self, parts) -> None:
        self.batches.append([*parts])
        assert self.may_go_on.acquire(timeout=20)
        if self.errors:
            raise self.errors.pop()
        for part in parts:
            part.settle()


class Submitter(threading.Thread):
    def __init__(self, calls: Calls) -> None:
        super().__init__(daemon=True)
        self.calls, self.raised = calls, None
        self.start()

    def run(self) -> None:
        try:
            self.calls.submit(Part())
        except BaseException as error:
            self.raised = error


def test_what_comes_during_a_call_leaves_together_in_the_next():
    calls = Calls()
    first = Submitter(calls)
    wait_until(lambda: len(calls.batches) == 1)
    others = [Submitter(calls) for _ in range(5)]
    wait_until(lambda: len(calls.pending) == 6)

    calls.may_go_on.release()
    first.join(20)  # it does not lead the next call
    wait_until(lambda: len(calls.batches) == 2)
    assert all(other.is_alive() for other in others)
    calls.may_go_on.release()
    for other in others:
        other.join(20)

    assert [len(batch) for batch in calls.batches] == [1, 5]


def test_an_error_reaches_all_and_the_next_call_is_made():
    calls = Calls()
    first = Submitter(calls)
    wait_until(lambda: len(calls.batches) == 1)
    others = [Submitter(calls) for _ in range(3)]
    wait_until(lambda: len(calls.pending) == 4)
    calls.errors = [redis.TimeoutError("second"), redis.ConnectionError("first")]

    for _ in range(2):
        calls.may_go_on.release()
    for thread in (first, *others):
        thread.join(20)

    assert [str(thread.raised) for thread in (first, *others)] == ["first", "second", "second", "second"]
    calls.may_go_on.release()
    calls.submit(Part())


def test_when_a_leader_is_interrupted_the_next_one_makes_its_call_again():
    calls = Calls()
    first = Submitter(calls)
    wait_until(lambda: len(calls.batches) == 1)
    second = Submitter(calls)
    wait_until(lambda: len(calls.pending) == 2)
    calls.errors = [KeyboardInterrupt()]

    for _ in range(2):
        calls.may_go_on.release()
    first.join(20), second.join(20)

    assert (type(first.raised), second.raised) == (KeyboardInterrupt, None)
    assert [len(batch) for batch in calls.batches] == [1, 2]


@contextmanager
def held_back(queue: JobQueue, monkeypatch):
    """Keep the first call on its way, until what is done meanwhile waits for the next one."""
    finish_and_fetch, entered, go_on = queue.finish_and_fetch, threading.Event(), threading.Event()

    def slow(*args, **kwargs):
        entered.set()
        go_on.wait(20)
        return finish_and_fetch(*args, **kwargs)

    monkeypatch.setattr(queue, "finish_and_fetch", slow)
    yield entered
    go_on.set()


def ack_all(broker, consumer, messages, monkeypatch) -> list:
    """Ack at once: the first one alone, all others together. Returns what was raised."""
    raised: list = []

    def ack(message) -> None:
        try:
            consumer.ack(message)
        except ConnectionClosed as error:
            raised.append(error)

    threads = [threading.Thread(target=ack, args=[message]) for message in messages]
    with held_back(broker.channel("q").queue, monkeypatch) as entered:
        threads[0].start()
        assert entered.wait(20)
        for thread in threads[1:]:
            thread.start()
        wait_until(lambda: len(broker.channel("q").pending) == len(messages))
    for thread in threads:
        thread.join(20)
    return raised


def test_acks_that_come_together_are_one_call(client, broker, monkeypatch):
    put(client, wait=[*"fedcba"], jobs=dict.fromkeys("abcdef", JOB))
    consumer, messages = take(broker, 6)
    client.config_resetstat()

    assert ack_all(broker, consumer, messages, monkeypatch) == []

    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == 2
    assert set(state(client)["completed"]) == set("abcdef")


def test_parts_succeed_and_fail_one_by_one(client, broker, monkeypatch, caplog):
    put(client, wait=[*"edcba"], jobs=dict.fromkeys("abcde", JOB))
    consumer, messages = take(broker, 5)
    client.set("emq:q:b:lock", "of another worker")
    client.delete("emq:q:c", "emq:q:d")
    client.set("emq:q:d", "text")

    assert ack_all(broker, consumer, messages, monkeypatch) == []

    found = state(client)
    assert set(found["completed"]) == {"a", "e"}
    assert found["locks"] >= {"b"}
    for job_id in "bcd":
        assert any(f"'{job_id}'" in line for line in lines(caplog, "WARNING")), job_id
    assert not broker.in_flight.all()


def test_an_error_of_a_call_reaches_each_ack_that_was_in_it(client, broker, monkeypatch):
    put(client, wait=[*"dcba"], jobs=dict.fromkeys("abcd", JOB))
    consumer, messages = take(broker, 4)
    faults = Faults(monkeypatch)
    faults.plan("finishAndFetch-1.lua", *[redis.exceptions.ReadOnlyError("READONLY")] * 2)

    assert len(ack_all(broker, consumer, messages, monkeypatch)) == 4

    for message in messages:
        consumer.ack(message)
    assert set(state(client)["completed"]) == set("abcd")


def outcome_of(job) -> tuple:
    return job, Outcome("completed" if job.job_id < b"c" else "failed", "1", "")


@pytest.mark.parametrize("fetches", [True, False])
def test_a_call_of_many_parts_that_is_sent_twice_changes_nothing_twice(client, fetches):
    def call(queue):
        client.flushdb()
        put(client, wait=[*"fedcba"], jobs=dict.fromkeys("abcdef", JOB))
        jobs = JobQueue(QueueKeys("q"), client, client).finish_and_fetch([], Fetch("earlier", 4)).jobs
        reply = queue.finish_and_fetch([outcome_of(job) for job in jobs])
        if fetches:
            again = JobQueue(QueueKeys("q"), client, client).finish_and_fetch([], Fetch("now", 2)).jobs
            found = JobQueue(QueueKeys("q"), client, client).finish_and_fetch([], Fetch("x", 2, lost_call="now")).jobs
            assert found == again
        found = state(client)
        return [each.outcome for each in reply.finished], {
            name: sorted(value) if name in ("completed", "failed") else value
            for name, value in found.items()
            if name in ("wait", "active", "locks", "completed", "failed")
        }

    once = call(JobQueue(QueueKeys("q"), client, client))
    assert call(JobQueue(QueueKeys("q"), SendsTwice(client), client)) == once
    assert once[0] == [1, 1, 1, 1]


def test_an_ack_and_the_fetch_that_it_carries_survive_a_lost_reply(client):
    put(client, wait=[*"dcba"], jobs=dict.fromkeys("abcd", JOB))
    take(EchoMQBroker(client=client, middleware=[]), queue="other")  # the server knows the script
    with LossyProxy(client.connection_pool.connection_kwargs["port"]) as proxy:
        broker = EchoMQBroker(client=redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 1)), middleware=[])
        consumer = broker.consume("q", prefetch=2, timeout=5_000)
        first, _ = next(consumer), next(consumer)
        found = []
        waiting = threading.Thread(target=lambda: found.append(next(consumer)))
        waiting.start()
        wait_until(lambda: "q" in broker.in_flight.threads.turns.waiting)
        proxy.lose(b"EVALSHA")

        consumer.ack(first)
        waiting.join(20)
        if found == [None]:
            found = [next(consumer)]

        assert proxy.lost == [b"EVALSHA"]
        assert [id_of(message) for message in found] == ["c"]
        after = state(client)
        assert (after["active"], after["wait"], set(after["completed"])) == (["c", "b"], ["d"], {"a"})
        assert after["a"]["atm"] == after["c"]["ats"] == "1"
        broker.close()
