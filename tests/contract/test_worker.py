"""Dramatiq's contract: workers that start, pause, stop and start again."""

from __future__ import annotations

import base64
import threading

import dramatiq
import pytest
import redis

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware
from dramatiq_echomq.broker.worker_id import worker_name

from ..support.brokers import working
from ..support.queue_data import state
from ..support.servers import wait_until


@pytest.fixture
def work(full_broker):
    @dramatiq.actor(broker=full_broker)
    def work(number):
        work.seen.append(number)
        work.started.set()
        work.may_end.wait(20)

    work.seen = []
    work.started, work.may_end = threading.Event(), threading.Event()
    work.may_end.set()
    return work


def arguments_in(client, name: str) -> list[int]:
    ids = client.lrange(f"emq:default:{name}", 0, -1)
    return [dramatiq.Message.decode(client.hget(b"emq:default:" + job_id, "data")).args[0] for job_id in ids]


def test_a_clean_stop_leaves_nothing_in_active_and_fetches_nothing_more(client, full_broker, work):
    for number in range(10):
        work.send(number)
    work.may_end.clear()

    with working(full_broker, worker_threads=1):
        work.started.wait(20)
        wait_until(lambda: client.llen("emq:default:active") == 1)
        threading.Timer(0.2, work.may_end.set).start()

    found = state(client, "default")
    assert work.seen == [0]
    assert arguments_in(client, "wait") == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert len(found["completed"]) == 1
    assert (found.get("active"), found["locks"]) == (None, set())

    with working(full_broker, worker_threads=1):
        full_broker.join("default", timeout=20_000)
    assert work.seen == list(range(10))


@pytest.mark.parametrize("threads", [1, 8])
def test_a_stop_in_the_middle_of_much_work_loses_nothing_and_runs_nothing_twice(client, full_broker, work, threads):
    for number in range(300):
        work.send(number)

    for stop_after in (20, 150, 300):
        with working(full_broker, worker_threads=threads):
            wait_until(lambda stop_after=stop_after: len(work.seen) >= stop_after)
        found = state(client, "default")
        assert (found.get("active"), found["locks"]) == (None, set())
        assert arguments_in(client, "wait") == sorted(arguments_in(client, "wait"), reverse=True)

    assert sorted(work.seen) == list(range(300))


def test_messages_are_requeued_at_stop_while_the_checker_runs(client, full_broker, work):
    full_broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100))
    for number in range(100):
        work.send(number)

    for _ in range(3):
        work.started.clear()
        with working(full_broker, worker_threads=2):
            work.started.wait(20)
    with working(full_broker, worker_threads=2):
        full_broker.join("default", timeout=20_000)

    assert sorted(work.seen) == list(range(100))
    assert not any("stc" in job for job in state(client, "default").values() if isinstance(job, dict))


def test_a_paused_worker_takes_nothing_and_a_resumed_one_goes_on(client, full_broker, work, monkeypatch):
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.05)
    with working(full_broker) as worker:
        work.send(1)
        full_broker.join("default", timeout=20_000)
        worker.pause()
        work.send(2)
        assert client.llen("emq:default:wait") == 1
        worker.resume()
        full_broker.join("default", timeout=20_000)

    assert work.seen == [1, 2]


def test_a_paused_worker_leaves_the_marker_to_others(client, full_broker, work, monkeypatch):
    """A block that went on would take it, and wake nobody."""
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.05)

    def blocks() -> bool:
        name = f"emq:{base64.b64encode(b'default').decode()}:w:{worker_name()}"
        return any(each["name"] == name and "b" in each["flags"] for each in client.client_list())

    with working(full_broker) as worker:
        wait_until(blocks)
        worker.pause()
        wait_until(lambda: not blocks(), 9)  # it would last 10 s
        work.send(1)
        assert state(client, "default")["marker"] == {"0": 0}
        worker.resume()
        full_broker.join("default", timeout=20_000)

    assert work.seen == [1]


def test_a_paused_queue_keeps_workers_from_its_jobs_and_resume_wakes_them(full_broker, work):
    full_broker.pause("default")
    with working(full_broker):
        work.send(1)
        assert not work.started.wait(0.3)
        full_broker.resume("default")
        full_broker.join("default", timeout=20_000)

    assert work.seen == [1]


def test_a_queue_that_is_declared_later_is_consumed(full_broker, work):
    with working(full_broker):

        @dramatiq.actor(broker=full_broker, queue_name="later")
        def late():
            seen.append("late")

        seen: list[str] = []
        late.send()
        full_broker.join("later", timeout=20_000)

    assert seen == ["late"]


def test_a_worker_of_some_queues_leaves_the_others_alone(client, full_broker, work):
    @dramatiq.actor(broker=full_broker, queue_name="other")
    def other():
        pass

    other.send()
    work.send(1)

    with working(full_broker, queues={"default"}):
        full_broker.join("default", timeout=20_000)

    assert (work.seen, client.llen("emq:other:wait")) == ([1], 1)


def test_two_brokers_share_the_work(client, redis_url, full_broker, work):
    other = EchoMQBroker(client=redis.Redis.from_url(redis_url, decode_responses=True))
    other.declare_actor(work)
    work.may_end.clear()
    with working(full_broker, worker_threads=1), working(other, worker_threads=1):
        for number in range(6):
            work.send(number)
        wait_until(lambda: len(work.seen) == 2, message="only one of them took a job")
        work.may_end.set()
        full_broker.join("default", timeout=20_000)

    assert sorted(work.seen) == list(range(6))
    other.close()
    other.client.close()


def test_stopping_a_worker_ends_its_threads(full_broker, work):
    before = set(threading.enumerate())

    with working(full_broker, worker_threads=3):
        work.send(1)
        full_broker.join("default", timeout=20_000)

    assert set(threading.enumerate()) <= before


def test_a_consumer_that_met_an_error_is_restarted_and_what_it_held_is_run(client, full_broker, work, monkeypatch):
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.05)
    errors = [redis.TimeoutError("slow"), redis.exceptions.ReadOnlyError("READONLY"), redis.BusyLoadingError("LOADING")]
    execute_command = full_broker.connections.fetching.execute_command

    def fail_at_first(*args, **options):
        if errors:
            raise errors.pop(0)
        return execute_command(*args, **options)

    for number in range(20):
        work.send(number)
    with working(full_broker, worker_threads=2):
        wait_until(lambda: len(work.seen) > 3)
        monkeypatch.setattr(full_broker.connections.fetching, "execute_command", fail_at_first)
        for number in range(20, 40):
            work.send(number)
        full_broker.join("default", timeout=20_000)

    assert not errors
    assert sorted(work.seen) == list(range(40))
