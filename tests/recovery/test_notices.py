"""What a worker says once about the queues that it finds."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

from ..support.brokers import lines, recoverer_of, working
from ..support.queue_data import put
from ..support.servers import wait_until


@pytest.fixture
def said(client, caplog):
    """The warnings of a worker that boots and makes three checks of some queues."""

    def said(*queues: str, **settings) -> list[str]:
        recoverer, _ = recoverer_of(client, *queues, **settings)
        recoverer.prepare()
        for _ in range(3):
            for name in queues:
                recoverer.check(name)
        return lines(caplog, "WARNING", "ERROR")

    return said


def test_a_worker_says_once_that_a_queue_is_paused(client, said):
    put(client, "q", meta={"paused": "1"})
    [line] = said("q")
    assert line.startswith("Queue 'q' is paused: no worker starts its jobs until it is resumed")
    assert "EchoMQBroker.resume('q') or `dramatiq-echomq resume`." in line


def test_a_worker_of_an_echomq_broker_says_it_when_it_boots(client, caplog):
    broker = EchoMQBroker(client=client, middleware=[StalledCheckerMiddleware(stalled_interval=60_000)])
    broker.declare_queue("q")
    broker.pause("q")
    with working(broker):
        wait_until(lambda: lines(caplog, "WARNING"))
    assert lines(caplog, "WARNING")[0].startswith("Queue 'q' is paused")


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"concurrency": "0"}, ["concurrency '0'", "no job of it is started"]),
        ({"concurrency": "-1"}, ["concurrency '-1'", "no job of it is started"]),
        ({"concurrency": "many\nERROR"}, ["concurrency 'many", "not obeyed"]),
        ({"max": "0", "duration": "1000"}, ["max '0'", "not obeyed"]),
        ({"max": "5", "duration": ""}, ["duration ''", "not obeyed"]),
    ],
)
def test_a_worker_says_once_that_a_limit_is_odd(client, said, meta, words):
    put(client, "q", meta=meta)
    [line] = said("q")
    assert all(word in line for word in words)
    assert line.isprintable()


@pytest.mark.parametrize("meta", [{}, {"concurrency": "1"}, {"max": "5", "duration": "1000", "version": "bullmq:5"}])
def test_a_queue_that_is_well_is_not_spoken_of(client, said, meta):
    put(client, "q", meta={"opts.maxLenEvents": "10000", **meta})
    assert said("q") == []


def test_what_could_not_be_read_at_boot_is_said_at_the_first_check(client, caplog, monkeypatch):
    put(client, "q", meta={"paused": "1"})
    recoverer, _ = recoverer_of(client, "q")
    with monkeypatch.context() as patch:
        patch.setattr(type(client), "hmget", lambda *_: (_ for _ in ()).throw(redis.ConnectionError("away")))
        recoverer.prepare()
    assert lines(caplog, "WARNING") == []
    recoverer.check("q")
    assert len(lines(caplog, "WARNING")) == 1


MISTYPED = "There is no queue {} in Redis so far, but there is {}. Is a name or prefix mistyped?"


def test_a_mistyped_queue_is_warned_of_once(client, said):
    put(client, "images", meta={"version": "bullmq:5"})
    assert said("imagse") == [MISTYPED.format("'emq:imagse'", "'emq:images'")]


def test_a_queue_under_the_prefix_of_bullmq_is_warned_of(client, said):
    put(client, "images", prefix="bull", meta={"version": "bullmq:5"})
    assert said("images") == [MISTYPED.format("'emq:images'", "'bull:images'")]


def test_a_queue_under_the_usual_prefix_is_warned_of_when_there_is_another_one(client, said):
    put(client, "images", wait=["1"])
    assert said("images", prefix="emqq") == [MISTYPED.format("'emqq:images'", "'emq:images'")]


def test_queues_of_others_are_named_when_none_is_alike(client, said):
    put(client, "mails", meta={"version": "bullmq:5"})
    put(client, "videos", prefix="bull", meta={"version": "bullmq:5"})
    client.hset("another:application:meta", "x", "1")
    assert said("a", "b") == [MISTYPED.format("'emq:a', 'emq:b'", "'bull:videos', 'emq:mails'")]


def test_several_queues_of_which_one_is_there_make_one_warning(client, said):
    for name in ("images", "mails"):
        put(client, name, meta={"version": "bullmq:5"})
    assert said("images", "mail", "imges") == [MISTYPED.format("'emq:mail', 'emq:imges'", "'emq:mails', 'emq:images'")]


def test_a_redis_without_queues_is_not_spoken_of(client, said):
    client.set("x", "y")
    assert said("q") == []


@pytest.mark.parametrize(("other", "warnings"), [("mails", 0), ("imagse", 1)])
def test_a_new_queue_of_an_echomq_broker_is_no_mistake_unless_a_name_is_alike(client, caplog, other, warnings):
    broker = EchoMQBroker(client=client, middleware=[])
    put(client, other, meta={"version": "bullmq:5"})
    recoverer, _ = recoverer_of(client, "images")
    recoverer.broker = broker
    recoverer.check("images")
    assert len(lines(caplog, "WARNING")) == warnings


def test_the_search_ends_early_in_a_large_redis(client, said):
    with client.pipeline(transaction=False) as pipeline:
        for number in range(40_000):
            pipeline.set(f"x{number}", "")
        pipeline.execute()
    client.config_resetstat()
    said("q")
    assert client.info("commandstats")["cmdstat_scan"]["calls"] <= 20
    assert "cmdstat_keys" not in client.info("commandstats")


def test_a_user_who_may_not_look_hears_nothing_of_it(client, caplog):
    put(client, "images", meta={"version": "bullmq:5"})
    client.execute_command("ACL", "SETUSER", "narrow", "reset", "on", ">pw", "~*", "+@all", "-scan", "-hmget")
    parameters = {**client.connection_pool.connection_kwargs, "username": "narrow", "password": "pw"}
    narrow = redis.Redis(host=parameters["host"], port=parameters["port"], username="narrow", password="pw")
    recoverer, _ = recoverer_of(narrow, "mails")
    try:
        recoverer.prepare()
        recoverer.check("mails")
    finally:
        client.execute_command("ACL", "DELUSER", "narrow")
    assert [line for line in lines(caplog, "WARNING", "ERROR") if "hmget" not in line] == []
