"""Dramatiq's contract: time limits, shutdown, age limits, aborts, skipped messages, the current message."""

from __future__ import annotations

import threading
import time

import dramatiq
import pytest
from dramatiq.middleware import CurrentMessage, Interrupt, Shutdown, SkipMessage, TimeLimitExceeded
from dramatiq.threading import raise_thread_exception

from ..support.brokers import working
from ..support.queue_data import state
from ..support.servers import wait_until


def work_on(events: list, *, until=lambda: False) -> None:
    """Run Python code until an interrupt comes, and note it."""
    try:
        events.append("started")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not until():
            time.sleep(0.005)
    except Interrupt as interrupt:
        events.append(type(interrupt))
        raise


def names(client, kept_in: str) -> list[str]:
    return [
        client.hget(f"emq:default:{job_id.decode()}", "name").decode()
        for job_id in client.zrange(f"emq:default:{kept_in}", 0, -1)
    ]


def test_a_time_limit_interrupts_an_actor(client, full_broker):
    for middleware in full_broker.middleware:
        if isinstance(middleware, dramatiq.middleware.TimeLimit):
            middleware.interval = 20

    @dramatiq.actor(broker=full_broker, time_limit=300, max_retries=0)
    def work():
        work_on(events)

    events: list = []
    work.send()

    with working(full_broker):
        full_broker.emit_after("process_boot")
        full_broker.join("default", timeout=20_000)

    assert events == ["started", TimeLimitExceeded]
    assert names(client, "failed") == ["work"]


def test_a_shutdown_is_notified_and_the_message_comes_back(client, full_broker):
    @dramatiq.actor(broker=full_broker, notify_shutdown=True, max_retries=1, min_backoff=1, max_backoff=1)
    def work():
        if "started" in events:
            events.append("done")
        else:
            work_on(events)

    events: list = []
    work.send()

    with working(full_broker):
        wait_until(lambda: events)
    assert events == ["started", Shutdown]
    assert not client.exists("emq:default:active")

    with working(full_broker):
        full_broker.join("default", timeout=20_000)
    assert events[-1] == "done"


def test_an_actor_that_is_not_notified_is_waited_for(client, full_broker):
    @dramatiq.actor(broker=full_broker)
    def work():
        work_on(events, until=may_end.is_set)
        events.append("done")

    may_end = threading.Event()
    events: list = []
    work.send()

    with working(full_broker):
        wait_until(lambda: events)
        threading.Timer(0.2, may_end.set).start()

    assert events == ["started", "done"]
    assert names(client, "completed") == ["work"]
    assert state(client, "default")["locks"] == set()


def test_a_message_over_its_age_limit_is_failed_and_not_run(client, full_broker):
    @dramatiq.actor(broker=full_broker, max_age=50)
    def work():
        seen.append(1)

    seen: list[int] = []
    message = work.message()
    full_broker.enqueue(message.copy(message_timestamp=message.message_timestamp - 1_000))

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == []
    assert names(client, "failed") == ["work"]


def test_a_message_that_middleware_skips_is_not_run_and_acked(client, full_broker):
    class SkipOdd(dramatiq.Middleware):
        def before_process_message(self, broker, message):
            if message.args[0] % 2:
                raise SkipMessage("odd")

        def after_skip_message(self, broker, message):
            skipped.append(message.args[0])

    @dramatiq.actor(broker=full_broker)
    def work(number):
        seen.append(number)

    full_broker.add_middleware(SkipOdd())
    seen: list[int] = []
    skipped: list[int] = []
    for number in range(4):
        work.send(number)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert (seen, skipped) == ([0, 2], [1, 3])
    assert names(client, "completed") == ["work"] * 4


def test_a_message_that_middleware_fails_before_it_is_run_is_failed(client, full_broker):
    class FailAll(dramatiq.Middleware):
        def before_process_message(self, broker, message):
            message.fail()

    @dramatiq.actor(broker=full_broker)
    def work():
        seen.append(1)

    full_broker.add_middleware(FailAll())
    seen: list[int] = []
    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == []
    assert names(client, "failed") == ["work"]


class Abort(Interrupt):
    """The message was aborted."""


class Aborts(dramatiq.Middleware):
    """Aborts messages as dramatiq-abort does: those that wait are skipped, those that run are interrupted."""

    def __init__(self) -> None:
        self.aborted: set[str] = set()
        self.threads: dict[str, int] = {}

    def abort(self, message) -> None:
        self.aborted.add(message.message_id)
        if message.message_id in self.threads:
            raise_thread_exception(self.threads[message.message_id], Abort)

    def before_process_message(self, broker, message):
        if message.message_id in self.aborted:
            raise SkipMessage("aborted")
        self.threads[message.message_id] = threading.get_ident()

    def after_process_message(self, broker, message, *, result=None, exception=None):
        self.threads.pop(message.message_id, None)
        if isinstance(exception, Abort):
            message.fail()

    after_skip_message = after_process_message


def test_messages_are_aborted_that_run_or_wait(client, full_broker):
    @dramatiq.actor(broker=full_broker, max_retries=0)
    def work(number):
        work_on(events, until=lambda: number == 3)

    aborts = Aborts()
    full_broker.add_middleware(aborts)
    events: list = []
    first, second, _ = (work.send(number) for number in (1, 2, 3))

    with working(full_broker):
        wait_until(lambda: first.message_id in aborts.threads and events)
        aborts.abort(second)
        aborts.abort(first)
        full_broker.join("default", timeout=20_000)

    assert events == ["started", Abort, "started"]
    assert (names(client, "failed"), names(client, "completed")) == (["work"], ["work", "work"])


def test_an_actor_knows_its_message(full_broker):
    @dramatiq.actor(broker=full_broker)
    def work():
        seen.append(CurrentMessage.get_current_message().message_id)

    full_broker.add_middleware(CurrentMessage())
    seen: list[str] = []
    message = work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == [message.message_id]
    assert CurrentMessage.get_current_message() is None


@pytest.mark.parametrize("exception", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_no_exception_of_an_actor_ends_its_worker(client, full_broker, exception):
    @dramatiq.actor(broker=full_broker, max_retries=0)
    def work(number):
        if number == 1:
            raise exception()

    for number in (1, 2):
        work.send(number)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert (names(client, "failed"), names(client, "completed")) == (["work"], ["work"])
