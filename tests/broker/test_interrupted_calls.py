"""Interrupts, as of TimeLimit and dramatiq-abort, that come while a thread tells Redis something."""

from __future__ import annotations

import logging
import random
import sys
import threading
import time

import dramatiq
import pytest
from dramatiq import Worker
from dramatiq.middleware import Interrupt
from dramatiq.threading import raise_thread_exception

from dramatiq_echomq.broker.group_commit import GroupCommit, Part
from dramatiq_echomq.protocol.clients import client_with

from ..support.brokers import working
from ..support.servers import wait_until


class Abort(Interrupt):
    """What middleware may raise in any thread, anywhere."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Threads end without a word when they are interrupted, and log nothing: an interrupt between the two
    would leave the lock of a log handler taken for ever.
    """
    monkeypatch.setattr(threading, "excepthook", lambda ended: None)
    monkeypatch.setattr(logging.Logger, "isEnabledFor", lambda logger, level: False)


class Calls(GroupCommit):
    """Calls that take as long as they are told to, and fail as they are told to."""

    def __init__(self, *fates) -> None:
        super().__init__()
        self.fates = list(fates)
        self.sent: list[list[Part]] = []

    def send(self, parts):
        self.sent.append(list(parts))
        if self.fates:
            self.fates.pop(0)()
        for part in parts:
            part.settle()


def in_thread(work, *args) -> threading.Thread:
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("others", [1, 7])
def test_what_an_interrupted_thread_was_to_send_the_next_one_sends(others):
    def be_interrupted():
        wait_until(lambda: len(calls.pending) == others + 1)
        raise Abort

    calls = Calls(be_interrupted)
    parts = [Part() for _ in range(others + 1)]
    first = in_thread(calls.submit, parts[0])
    wait_until(lambda: calls.sent)
    threads = [in_thread(calls.submit, part) for part in parts[1:]]
    for thread in (first, *threads):
        thread.join(20)
        assert not thread.is_alive()
    assert all(part.is_done and part.error is None for part in parts)
    assert len(calls.sent) == 2
    assert calls.sent[1][0] is parts[0]  # what it had to say is said, too
    assert not calls.pending


def test_a_call_that_fails_fails_for_all_that_are_in_it_and_for_no_other():
    def fail():
        raise ValueError("no")

    calls = Calls(fail)
    with pytest.raises(ValueError, match="no"):
        calls.submit(Part())
    calls.submit(Part())
    assert not calls.pending


def test_no_thread_waits_for_ever_however_many_are_interrupted(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # an interrupt may hit pytest's own in the middle

    def work():
        while not may_end.is_set():
            part = Part()
            calls.submit(part)
            assert part.is_done

    def is_alive(thread):
        return thread.is_alive()

    calls, may_end, chance = Calls(), threading.Event(), random.Random(1)
    threads = []
    for _ in range(1_000):
        threads = list(filter(is_alive, threads))
        threads += [in_thread(work) for _ in range(4 - len(threads))]
        raise_thread_exception(chance.choice(threads).ident, Abort)
        time.sleep(chance.random() / 1_000)
        calls.sent.clear()
    may_end.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_no_command_takes_the_reply_of_one_that_was_interrupted(client):
    own = client_with(client)
    own.ping()
    [connection] = own.connection_pool._available_connections

    def interrupt(*args, **options):
        del connection.read_response
        raise Abort  # as a thread is interrupted that has sent a command

    connection.read_response = interrupt
    with pytest.raises(Abort):
        own.blpop("nothing", 0.2)
    assert own.ping() is True
    own.close()


@pytest.mark.parametrize("at", ["before", "after"])
def test_jobs_that_an_interrupted_thread_fetched_run_at_once_and_once(client, broker, monkeypatch, at):
    """The worker's other thread was to end a job, and fetched for the first one meanwhile."""
    ran: list[int] = []

    @dramatiq.actor(broker=broker)
    def work(number):
        ran.append(number)

    for number in range(20):
        work.send(number)
    channel = broker.channel("default")
    call, arrived = channel.queue.finish_and_fetch, type(channel.arrivals.unread)

    def interrupted_once(*args, **options):
        if threading.current_thread() in worker.workers and not interrupted:
            reply = call(*args, **options)
            if reply.jobs:
                interrupted.append(1)
                if at == "before":
                    raise Abort
                channel.arrivals.unread = arrived_and_interrupted()
            return reply
        return call(*args, **options)

    class arrived_and_interrupted(arrived):
        def append(self, arrival):
            super().append(arrival)
            channel.arrivals.unread = arrived(self)
            raise Abort

    interrupted: list[int] = []
    monkeypatch.setattr(channel.queue, "finish_and_fetch", interrupted_once)
    worker = Worker(broker, worker_timeout=20, worker_threads=2)
    worker.start()
    try:
        wait_until(lambda: client.zcard("emq:default:completed") == 20)
    finally:
        worker.stop()
    assert interrupted
    assert sorted(ran) == list(range(20))
    assert not broker.in_flight.all()
    assert not client.exists("emq:default:active")


def test_a_job_whose_thread_was_interrupted_before_it_began_is_given_back(client, broker, monkeypatch):
    ran: list[int] = []

    @dramatiq.actor(broker=broker)
    def work(number):
        ran.append(number)

    def process_message(message):
        del worker.workers[0].process_message
        raise Abort

    with working(broker, worker_threads=2) as worker:
        for thread in worker.workers:
            thread.pause()
        for thread in worker.workers:
            thread.paused_event.wait(20)
        worker.workers[0].process_message = process_message
        worker.workers[0].resume()
        work.send(1)
        wait_until(lambda: not worker.workers[0].is_alive())
        worker.workers[1].resume()
        wait_until(lambda: client.zcard("emq:default:completed") == 1)
    assert ran == [1]


def test_no_message_is_lost_and_no_thread_leaks_however_many_are_interrupted(client, broker):
    @dramatiq.actor(broker=broker)
    def work(number):
        time.sleep(number % 3 / 1_000)

    chance = random.Random(7)
    for _ in range(5):
        client.flushdb()
        for number in range(60):
            work.send(number)
        with working(broker, worker_threads=8) as worker:
            for _ in range(5):
                time.sleep(chance.random() / 100)
                alive = [thread for thread in worker.workers if thread.is_alive()]
                raise_thread_exception(chance.choice(alive).ident, Abort)
            wait_until(lambda: broker.get_queue_message_counts("default").waiting == 0)
        counts = broker.get_queue_message_counts("default")
        assert counts.waiting + counts.active + counts.completed + counts.failed == 60
        assert not broker.in_flight.threads.turns.reserved()
        assert not broker.in_flight.all()
