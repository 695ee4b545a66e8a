"""What Dramatiq makes of a job that its worker loses: it is somebody else's now."""

from __future__ import annotations

import asyncio
import threading
import time

import dramatiq
import pytest
from dramatiq.middleware import AsyncIO, Callbacks, Retries, SkipMessage
from dramatiq.results import Results, ResultTimeout
from dramatiq.results.backends import StubBackend

from dramatiq_echomq import EchoMQBroker, LockLost, StalledCheck, StalledChecker

from ..support.brokers import working
from ..support.job_data import id_of, take, wait_until_renewed
from ..support.queue_data import state
from ..support.servers import wait_until


class Ends(dramatiq.Middleware):
    """Notes how messages end."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def after_process_message(self, broker, message, *, result=None, exception=None):
        self.ends.append("processed")

    def after_skip_message(self, broker, message):
        self.ends.append("skipped")

    def after_ack(self, broker, message):
        self.ends.append("acked")

    def after_nack(self, broker, message):
        self.ends.append("nacked")


@pytest.fixture
def ends():
    return Ends()


@pytest.fixture
def backend():
    return StubBackend()


@pytest.fixture
def broker(client, ends, backend):
    """A broker whose locks last for 1 s."""
    middleware = [Callbacks(), Retries(min_backoff=1, max_backoff=1), Results(backend=backend), ends]
    broker = EchoMQBroker(client=client, middleware=middleware, lock_duration=1_000)
    yield broker
    broker.close()


class Work:
    """An actor that works on until it may end, and what became of it."""

    def __init__(self, broker: EchoMQBroker, *, swallows: bool = False, **options: object) -> None:
        self.interrupts: list[type] = []
        self.started, self.may_end = threading.Event(), threading.Event()
        self.swallows = swallows
        options |= {"store_results": True, "on_failure": "told", "on_success": "told", "queue_name": "q"}
        self.actor = dramatiq.actor(self.run, actor_name="work", broker=broker, **options)
        dramatiq.actor(lambda *_: None, actor_name="told", broker=broker, queue_name="told")
        self.message = self.actor.send()

    def run(self):
        self.started.set()
        try:
            while not self.may_end.is_set():
                time.sleep(0.002)
        except LockLost as interrupt:
            self.interrupts.append(type(interrupt))
            if not self.swallows:
                raise
        return "a result"


def queue_at_rest(client) -> dict:
    """The queue without its marker, which an idle worker may take at any moment."""
    return {name: value for name, value in state(client).items() if name != "marker"}


def take_away(client, message) -> None:
    client.set(f"emq:q:{id_of(message)}:lock", "of another worker")


@pytest.mark.parametrize("swallows", [False, True], ids=["raised", "swallowed"])
def test_an_actor_whose_job_is_lost_is_interrupted_and_nothing_follows_from_it(client, broker, backend, ends, swallows):
    work = Work(broker, swallows=swallows)

    with working(broker, queues={"q"}):
        assert work.started.wait(20)
        take_away(client, work.message)
        wait_until(lambda: work.interrupts)
        wait_until(lambda: "skipped" in ends.ends)
        before = queue_at_rest(client)
        wait_until(lambda: not broker.in_flight.all())

    assert work.interrupts == [LockLost]
    assert queue_at_rest(client) == before
    assert before["active"] == [id_of(work.message)]
    assert not {"wait", "delayed", "completed", "failed"} & before.keys()
    assert client.keys("emq:told:*") == []
    assert ends.ends == ["skipped"]
    with pytest.raises(ResultTimeout):
        work.message.get_result(backend=backend, block=True, timeout=10)


def test_an_asynchronous_actor_whose_job_is_lost_is_cancelled_and_nothing_follows_from_it(client, broker, ends):
    broker.add_middleware(AsyncIO())
    started, seen = threading.Event(), []

    @dramatiq.actor(broker=broker, queue_name="q")
    async def work():
        started.set()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError as interrupt:
            seen.append(type(interrupt))
            raise

    message = work.send()
    with working(broker):
        assert started.wait(20)
        take_away(client, message)
        wait_until(lambda: ends.ends == ["skipped"])
        wait_until(lambda: not broker.in_flight.all())

    assert seen == [asyncio.CancelledError]
    assert state(client)["active"] == [id_of(message)]


def test_the_thread_of_a_lost_job_goes_on_with_the_next(client, broker):
    work = Work(broker)

    with working(broker, queues={"q"}):
        assert work.started.wait(20)
        take_away(client, work.message)
        wait_until(lambda: work.interrupts)
        work.may_end.set()
        work.actor.send()
        wait_until(lambda: client.zcard("emq:q:completed") == 1)

    assert state(client)["active"] == [id_of(work.message)]


def test_a_job_that_is_lost_before_a_thread_starts_it_is_not_run_and_no_middleware_told(client, broker, ends):
    work = Work(broker)
    _, [taken] = take(broker)
    take_away(client, work.message)
    broker.locks.renew()

    with pytest.raises(SkipMessage):
        broker.emit_before("process_message", taken)
    broker.emit_after("skip_message", taken)

    assert taken.failed
    assert ends.ends == []


def test_a_long_job_keeps_its_lock_while_checks_go_by(client, broker):
    work = Work(broker, lock_duration=8_000)

    with working(broker, queues={"q"}):
        assert work.started.wait(20)
        for _ in range(4):
            assert StalledChecker(client).check("q") == StalledCheck("q")
            wait_until_renewed(client, f"emq:q:{id_of(work.message)}:lock")
        work.may_end.set()
        broker.join("q", timeout=20_000)

    assert work.interrupts == []
    assert list(state(client)["completed"]) == [id_of(work.message)]


def test_a_job_that_ends_while_the_worker_drains_is_completed(client, broker):
    """Threads go on for minutes after before_worker_shutdown."""
    work = Work(broker, lock_duration=8_000)

    def end_later():
        wait_until(lambda: broker.is_draining)
        wait_until_renewed(client, f"emq:q:{id_of(work.message)}:lock", times=2)
        work.may_end.set()

    with working(broker, queues={"q"}):
        assert work.started.wait(20)
        threading.Thread(target=end_later, daemon=True).start()

    assert list(state(client)["completed"]) == [id_of(work.message)]
    assert work.interrupts == []
