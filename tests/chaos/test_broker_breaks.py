"""Odd data, odd processes, and a thread that dies at the worst moment."""

from __future__ import annotations

import multiprocessing
import os
import threading

import dramatiq
import pytest
import redis
from dramatiq.middleware import TimeLimitExceeded

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware
from dramatiq_echomq.broker.queue import JobQueue

from ..support.faults import Log, quicken, recording_actor, running, settled
from ..support.job_data import add, id_of, take
from ..support.queue_data import put, state
from ..support.servers import Server, wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    quicken(monkeypatch)


def test_a_job_whose_thread_is_killed_while_it_acks_is_run_again(client, monkeypatch):
    broker, log = EchoMQBroker(client=client, middleware=[], lock_duration=1_000), Log()
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=200))
    recording_actor(broker, log)
    finish_and_fetch, interrupts = JobQueue.finish_and_fetch, [TimeLimitExceeded()]

    def interrupted(queue, finished, *args, **kwargs):
        if finished and interrupts:
            raise interrupts.pop()
        return finish_and_fetch(queue, finished, *args, **kwargs)

    monkeypatch.setattr(JobQueue, "finish_and_fetch", interrupted)
    monkeypatch.setattr(threading, "excepthook", lambda problem: None)
    add(broker, 1)
    client.delete("emq:q:marker")  # for which the consumer would fetch again, and tell what the thread could not
    with running(broker):
        wait_until(settled(broker, 1))
        wait_until(lambda: not broker.in_flight.all())
    assert log.ran == [1, 1]


def test_a_job_that_is_lost_while_middleware_waits_is_not_run(client):
    class Slow(dramatiq.Middleware):
        def before_process_message(self, broker, message):
            client.set(f"emq:q:{id_of(message)}:lock", "of another worker")
            broker.locks.renew()

    broker, log = EchoMQBroker(client=client, middleware=[Slow()]), Log()
    recording_actor(broker, log)
    message = add(broker, 1)
    with running(broker):
        wait_until(lambda: client.get(f"emq:q:{id_of(message)}:lock") == b"of another worker")
        wait_until(lambda: not broker.in_flight.all())
    assert log.ran == []
    assert client.get(f"emq:q:{id_of(message)}:lock") == b"of another worker"


@pytest.mark.parametrize(
    "odd", [{"plan": "a text"}, {"plan": {"pattern": b"\xff"}}, {"score": float("inf")}, {"plan": {"every": "1e999"}}]
)
def test_a_job_of_an_odd_scheduler_stops_no_other_job(client, odd):
    own = "repeat:daily:1000"
    put(client, wait=["a", own], jobs={"a": {"data": "[1]"}, own: {"data": "[2]", "rjk": "daily"}})
    put(client, repeat={"daily": odd.get("score", 1000)}, **{"repeat:daily": odd.get("plan", {"pattern": "* * * * *"})})
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    with running(broker, threads=1):
        wait_until(lambda: client.zcard("emq:q:completed") == 2)
        add(broker, 3)
        wait_until(lambda: log.ran == [[2], [1], 3])


def test_a_client_with_decoded_responses_or_a_single_connection_or_resp3_will_do(redis_url, client):
    for number, options in enumerate(({"decode_responses": True}, {"single_connection_client": True}, {"protocol": 3})):
        broker, log = EchoMQBroker(client=redis.Redis.from_url(redis_url, **options), middleware=[]), Log()
        recording_actor(broker, log)
        with running(broker):
            add(broker, 1)
            add(broker, 2, delay=50)
            wait_until(settled(broker, 2 * number + 2))
        assert log.ran == [1, 2]


def test_odd_ids_and_odd_keys_stop_no_other_job(client, caplog):
    put(
        client,
        wait=["ghost", "", "text", "list", "bad.lock", b"\xff\x00", "a b", "good"],
        jobs={
            "bad.lock": {"data": "[1]"},
            b"\xff\x00": {"data": "[2]"},
            "a b": {"data": "[3]"},
            "good": {"data": "[4]"},
        },
    )
    client.set("emq:q:text", "no hash")
    client.rpush("emq:q:list", "no hash")
    client.rpush("emq:q:good:lock", "no text")
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    with running(broker):
        wait_until(lambda: len(log.ran) == 4)
        wait_until(lambda: not client.exists("emq:q:active"))
    assert sorted(what[0] for what in log.ran) == [1, 2, 3, 4]
    assert "wait" not in state(client)


@pytest.mark.parametrize("fields", [{"ats": "many"}, {"stc": "NaN"}, {"priority": "x"}, {"opts": "[]"}, {"opts": "{"}])
def test_a_job_with_odd_fields_runs(client, fields):
    put(client, wait=["odd"], jobs={"odd": {"data": "[1]", **fields}})
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    with running(broker):
        wait_until(settled(broker, 1))
    assert log.ran == [[1]]


@pytest.mark.parametrize("name", ["wait", "active", "delayed", "completed", "meta", "marker", "events"])
def test_a_key_of_the_wrong_type_stops_one_queue_and_only_until_it_is_gone(client, name):
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    broker.declare_queue("other")
    client.set(f"emq:q:{name}", "of the wrong type")
    with running(broker):
        add(broker, 1, queue="other")
        wait_until(lambda: client.zcard("emq:other:completed") == 1)
        assert client.get(f"emq:q:{name}") == b"of the wrong type"
        client.delete(f"emq:q:{name}")
        add(broker, 2)
        wait_until(settled(broker, 1))
    assert log.ran == [1, 2]


def test_a_huge_queue_with_many_due_jobs_is_worked_off_at_once(client):
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    count = 30_000
    with client.pipeline(transaction=False) as pipeline:
        for number in range(count):
            pipeline.hset(f"emq:q:{number}", mapping={"name": "work", "data": str(number), "opts": "{}"})
        pipeline.rpush("emq:q:wait", *range(count // 2))
        pipeline.zadd("emq:q:delayed", {number: number * 4096 for number in range(count // 2, count)})
        pipeline.execute()
    with running(broker, threads=4):
        wait_until(lambda: len(log.ran) > 1000)
    assert len(set(log.ran)) == len(log.ran)
    found = broker.get_queue_message_counts("q")
    assert found.active == 0
    assert found.waiting + found.delayed + len(log.ran) == count


def test_a_redis_without_memory_loses_nothing(client):
    with Server() as server, server.client() as direct:
        broker, log = EchoMQBroker(client=direct, middleware=[]), Log()
        recording_actor(broker, log)
        for number in range(20):
            add(broker, number)
        direct.config_set("maxmemory", 1)
        with pytest.raises(redis.RedisError):
            add(broker, 20)
        with running(broker):
            before = len(log.ran)
            wait_until(lambda: len(log.ran) > before or broker.get_queue_message_counts("q").waiting == 20)
            direct.config_set("maxmemory", 0)
            wait_until(settled(broker, 20))
        assert sorted(log.ran) == list(range(20))


def test_two_brokers_in_one_process_share_a_queue_or_keep_apart(client):
    logs = [Log(), Log(), Log()]
    brokers = [EchoMQBroker(client=client, middleware=[], prefix=prefix) for prefix in ("emq", "emq", "other")]
    for broker, log in zip(brokers, logs, strict=True):
        recording_actor(broker, log)
    with running(brokers[0]), running(brokers[1]), running(brokers[2]):
        for number in range(20):
            add(brokers[0], number)
            add(brokers[2], number)
        for broker in brokers:
            wait_until(settled(broker, 20))
    assert sorted(logs[0].ran + logs[1].ran) == sorted(logs[2].ran) == list(range(20))


def test_a_broker_works_on_both_sides_of_a_fork(client):
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    with running(broker):
        add(broker, 0)
        wait_until(settled(broker, 1))
        child = multiprocessing.get_context("fork").Process(target=use_and_leave, args=(broker, os.getpid()))
        child.start()
        child.join(20)
        assert child.exitcode == 0
        add(broker, 2)
        wait_until(settled(broker, 3))


def use_and_leave(broker: EchoMQBroker, parent: int) -> None:
    """What the forked child does: it enqueues, takes and acks on a queue of its own and on the parent's."""
    assert os.getpid() != parent
    message = add(broker, 1)
    add(broker, 2, queue="mine")
    consumer, [mine] = take(broker, queue="mine")
    consumer.ack(mine)
    wait_until(lambda: broker.client.zscore("emq:q:completed", id_of(message)))
    wait_until(settled(broker, 2))
