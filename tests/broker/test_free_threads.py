"""Jobs are fetched for threads that are free, and shared fairly among queues."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import SimpleNamespace

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker import lifecycle

from ..support.brokers import working
from ..support.job_data import JOB, add, id_of, message
from ..support.queue_data import put, state
from ..support.servers import wait_until


@pytest.mark.parametrize("threads", [1, 3])
def test_a_worker_takes_no_more_than_it_has_threads(client, threads):
    broker = EchoMQBroker(client=client, middleware=[])
    gate, started = threading.Event(), []

    @dramatiq.actor(broker=broker, queue_name="q")
    def work(number):
        started.append(number)
        gate.wait(20)

    broker.enqueue_many(work.message(number) for number in range(10))
    with working(broker, worker_threads=threads):
        wait_until(lambda: len(started) == threads)
        assert client.llen("emq:q:active") == threads
        assert state(client)["locks"] == {job.decode() for job in client.lrange("emq:q:active", 0, -1)}
        gate.set()
        broker.join("q", timeout=20_000)
    assert sorted(started) == [*range(10)]
    broker.close()


@pytest.mark.parametrize(
    ("threads", "prefetch", "taken"), [(None, 1, 1), (None, 4, 4), (2, 4, 2), (4, 2, 2), (4, 1, 1), (3, 3, 3)]
)
def test_prefetch_is_an_upper_bound_and_counts_alone_where_no_worker_has_booted(
    client, broker, threads, prefetch, taken
):
    names = [str(number) for number in range(6)]
    put(client, wait=names, jobs=dict.fromkeys(names, JOB))
    if threads:
        broker.emit_before("worker_boot", SimpleNamespace(worker_threads=threads))
    consumer = broker.consume("q", prefetch=prefetch, timeout=1)

    found = [next(consumer) for _ in range(6)]

    assert len([message for message in found if message]) == taken
    assert len(state(client)["active"]) == taken
    consumer.close()
    if threads:
        broker.emit_after("worker_shutdown", None)


def test_a_job_waits_in_no_worker_while_another_one_is_idle(client):
    brokers = [EchoMQBroker(client=client, middleware=[]) for _ in range(2)]
    gate, ran = threading.Event(), []

    def work(what):
        ran.append(what)
        if what == "long":
            gate.wait(20)

    actors = [dramatiq.actor(work, broker=broker, actor_name="work", queue_name="q") for broker in brokers]
    with working(brokers[0], worker_threads=1), working(brokers[1], worker_threads=1):
        actors[0].send("long")
        wait_until(lambda: ran)
        for number in range(20):
            actors[0].send(number)
        wait_until(lambda: len(ran) == 21)
        gate.set()
    for broker in brokers:
        broker.close()


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_two_full_queues_share_the_starts(client, threads):
    broker = EchoMQBroker(client=client, middleware=[])
    started = []

    def work(queue):
        started.append(queue)
        time.sleep(0.001)  # no thread keeps the interpreter to itself

    for queue in ("one", "two"):
        dramatiq.actor(lambda queue=queue: work(queue), actor_name=queue, queue_name=queue, broker=broker)
        broker.enqueue_many(message(actor=queue, queue=queue) for _ in range(1_500))

    with working(broker, worker_threads=threads):
        wait_until(lambda: {"one", "two"} <= {*started})  # both consumers are there
        seen = len(started)
        wait_until(lambda: len(started) >= seen + 1_000)
        shares = Counter(started[seen : seen + 1_000])

    assert min(shares["one"], shares["two"]) >= 400, shares
    broker.close()


def test_a_queue_whose_jobs_are_long_leaves_threads_to_the_other(client):
    broker = EchoMQBroker(client=client, middleware=[])
    gate, ran = threading.Event(), []
    dramatiq.actor(lambda: gate.wait(20), actor_name="long", queue_name="long", broker=broker)
    dramatiq.actor(lambda: ran.append(1), actor_name="short", queue_name="short", broker=broker)
    broker.enqueue_many(message(actor="long", queue="long") for _ in range(2))
    broker.enqueue_many(message(actor="short", queue="short") for _ in range(50))

    with working(broker, worker_threads=4):
        wait_until(lambda: len(ran) == 50)
        gate.set()
    broker.close()


@pytest.mark.parametrize("is_command", [True, False])
def test_a_process_of_the_command_fetches_nothing_before_it_has_said_that_it_has_booted(
    client, monkeypatch, is_command
):
    """A job that killed it before would leave its main process waiting, for ever if in the middle of saying so."""
    monkeypatch.setattr(lifecycle, "FETCHES_AFTER", 1_000)
    broker = EchoMQBroker(client=client, middleware=[])
    ran = threading.Event()
    dramatiq.actor(ran.set, actor_name="work", queue_name="q", broker=broker).send()
    if is_command:
        broker.emit_after("process_boot")
    with working(broker):
        assert ran.wait(0.1 if is_command else 20) is not is_command
        broker.in_flight.threads.open()
        assert ran.wait(20)
    broker.close()


def test_soon_after_its_boot_a_process_of_the_command_fetches(client):
    broker = EchoMQBroker(client=client, middleware=[])
    ran = threading.Event()
    dramatiq.actor(ran.set, actor_name="work", queue_name="q", broker=broker).send()
    broker.emit_after("process_boot")
    with working(broker):
        assert ran.wait(20)
    broker.close()


class SlowHook(dramatiq.Middleware):
    """Takes its time once a message of the actor `slow` has been run."""

    def __init__(self) -> None:
        self.is_in_hook, self.gate = threading.Event(), threading.Event()

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if message.actor_name == "slow":
            self.is_in_hook.set()
            self.gate.wait(20)


@pytest.fixture
def slow_hook(client):
    """A hook in which a thread of a worker is, and the worker's broker."""
    hook = SlowHook()
    broker = EchoMQBroker(client=client, middleware=[hook])
    dramatiq.actor(lambda: None, actor_name="slow", queue_name="q", broker=broker)
    yield hook, broker
    broker.close()


@pytest.mark.parametrize("fails", [False, True])
def test_a_thread_whose_middleware_takes_long_is_not_free_for_its_own_queue(client, slow_hook, fails):
    hook, broker = slow_hook
    ran, gate = [], threading.Event()

    @dramatiq.actor(queue_name="q", broker=broker)
    def work(what):
        ran.append(what)
        if what == "quick" and fails:
            raise RuntimeError
        if what != "quick":
            gate.wait(20)

    with working(broker, worker_threads=2):
        broker.actors["slow"].send()
        assert hook.is_in_hook.wait(20)
        messages = broker.enqueue_many(work.message(what) for what in ("quick", "long", "other worker's"))
        wait_until(lambda: "long" in ran)  # fetched by the call that finished the quick one

        assert state(client)["wait"] == [id_of(messages[-1])]
        hook.gate.set()
        wait_until(lambda: "other worker's" in ran)
        gate.set()


def test_a_thread_whose_middleware_takes_long_is_not_free_for_another_queue(client, slow_hook):
    hook, broker = slow_hook
    ran: list[str] = []
    dramatiq.actor(ran.append, actor_name="work", queue_name="other", broker=broker)

    with working(broker, worker_threads=1):
        broker.actors["slow"].send()
        assert hook.is_in_hook.wait(20)
        assert broker.in_flight.threads.reserve("other", prefetch=1) is None
        add(broker, "x", queue="other")
        hook.gate.set()
        wait_until(lambda: ran)


def test_what_no_thread_will_run_is_given_back(client):
    """All threads of the worker have died: other workers run its jobs at once."""
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    broker = EchoMQBroker(client=client, middleware=[])
    threads = [SimpleNamespace(is_alive=lambda: True) for _ in range(2)]
    worker = SimpleNamespace(worker_threads=2, workers=threads, work_queue=SimpleNamespace(queue=[]))
    broker.emit_before("worker_boot", worker)
    consumer = broker.consume("q", prefetch=4, timeout=1)
    assert [id_of(next(consumer)) for _ in range(2)] == ["a", "b"]

    threads[0].is_alive = threads[1].is_alive = lambda: False
    wait_until(lambda: next(consumer) is None and "active" not in state(client))

    found = state(client)
    assert (found["wait"], found["locks"]) == (["b", "a"], set())
    assert not broker.in_flight.all()
    broker.emit_after("worker_shutdown", worker)
    broker.close()


def test_a_message_that_was_given_back_is_not_run_by_a_thread_that_is_left(client, broker):
    add(broker)
    consumer = broker.consume("q", timeout=1)
    message = next(consumer)
    consumer.requeue([message])

    with pytest.raises(dramatiq.middleware.SkipMessage):
        broker.emit_before("process_message", message)
    broker.emit_after("skip_message", message)
    consumer.nack(message)

    assert len(state(client)["wait"]) == 1
    assert "failed" not in state(client)
