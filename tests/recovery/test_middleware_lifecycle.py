from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import pytest
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

from ..support.brokers import Recorder, booted, lines, sweepers, working
from ..support.servers import wait_until
from ..support.worker_data import register, registered, registration


def equipped(client, *declared: str, interval: int = 100, **parameters):
    broker, recorder = StubBroker(), Recorder()
    broker.add_middleware(StalledCheckerMiddleware(client=client, stalled_interval=interval, **parameters))
    broker.add_middleware(recorder)
    for queue_name in declared:
        broker.declare_queue(queue_name)
    return broker, recorder


def checked(recorder) -> set[str]:
    return {queue_name for queue_name, _ in recorder.named("check")}


def test_several_workers_one_after_the_other_have_a_thread_each(client):
    broker, recorder = equipped(client, "q")
    for _ in range(3):
        recorder.signals.clear()
        with working(broker):
            (thread,) = sweepers()
            wait_until(lambda: recorder.named("check"))
        assert not thread.is_alive()
        assert sweepers() == []


def test_a_second_boot_without_a_shutdown_leaves_one_thread(client):
    broker, _ = equipped(client)
    with booted(broker, "q") as worker:
        broker.emit_after("worker_boot", worker)
        assert len(sweepers()) == 1
    assert sweepers() == []


def test_one_middleware_on_two_brokers_checks_the_queues_of_both_workers(client):
    middleware, recorder = StalledCheckerMiddleware(client=client, stalled_interval=100), Recorder()
    first, second = StubBroker(middleware=[middleware, recorder]), StubBroker(middleware=[middleware, recorder])
    with booted(first, "a"):
        with booted(second, "b"):
            wait_until(lambda: checked(recorder) == {"a", "b"})
            assert len(sweepers()) == 2
        recorder.signals.clear()
        wait_until(lambda: checked(recorder) == {"a"})
    assert sweepers() == []


def test_a_shutdown_without_a_boot_is_no_error(client, caplog):
    broker, _ = equipped(client)
    broker.emit_before("worker_shutdown", SimpleNamespace(consumers={}))
    assert caplog.records == []


def test_queues_that_are_declared_later_are_checked(client):
    broker, recorder = equipped(client, "early")
    with working(broker):
        wait_until(lambda: checked(recorder) == {"early"})
        broker.declare_queue("late")
        wait_until(lambda: checked(recorder) == {"early", "late"})


def test_a_worker_without_any_queue_checks_the_first_one_that_is_declared(client):
    broker, recorder = equipped(client)
    with working(broker):
        broker.declare_queue("late")
        wait_until(lambda: checked(recorder) == {"late"})


def test_only_the_queues_that_a_worker_consumes_are_checked(client):
    broker, recorder = equipped(client, "mine", "theirs")
    with working(broker, queues={"mine"}):
        wait_until(lambda: len(recorder.named("check")) >= 3)
    assert checked(recorder) == {"mine"}


def test_the_queues_of_the_middleware_go_before_those_of_the_worker(client):
    broker, recorder = equipped(client, "q", queues=["a", "b.DQ", "b"])
    with working(broker):
        wait_until(lambda: len(recorder.named("check")) >= 4)
    assert checked(recorder) == {"a", "b"}


def test_the_first_check_comes_one_interval_after_the_boot(client):
    broker, recorder = equipped(client, interval=400)
    started = time.monotonic()
    with booted(broker, "q"):
        wait_until(lambda: recorder.named("check"))
        assert time.monotonic() - started >= 0.4


def test_a_shutdown_does_not_wait_for_the_interval(client):
    broker, _ = equipped(client, interval=60_000)
    with booted(broker, "q"):
        (thread,) = sweepers()
        started = time.monotonic()
    assert not thread.is_alive()
    assert time.monotonic() - started < 30


def test_the_longest_interval_there_is_does_not_end_the_thread(client):
    broker, _ = equipped(client, interval=2**53 - 1)
    with booted(broker, "q"):
        (thread,) = sweepers()
        thread.join(0.1)
        assert thread.is_alive()
    assert sweepers() == []


def test_without_any_redis_there_is_one_error_and_no_thread(caplog):
    broker = RabbitmqBroker(url="amqp://localhost:1", middleware=[StalledCheckerMiddleware()])
    with booted(broker, "q"):
        assert sweepers() == []
    (line,) = lines(caplog, "ERROR", "CRITICAL")
    assert "RabbitmqBroker has no Redis client" in line
    assert "url or a client" in line


def test_a_stub_broker_works_without_redis_and_says_that_nothing_is_checked(caplog):
    broker, _ = equipped(None, "q")
    with working(broker):
        assert sweepers() == []
    (line,) = lines(caplog, "WARNING", "ERROR", "CRITICAL")
    assert "StubBroker has no Redis client" in line


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "Checking for stalled jobs every 20 s: emq:a, emq:b. A job of a killed worker is back within 70 s"),
        ({"prefix": "bull"}, "Checking for stalled jobs every 20 s: bull:a, bull:b."),
        (
            {"lock_duration": 60_000},
            "Checking for stalled jobs every 20 s: emq:a, emq:b. A job of a killed worker is back within 100 s",
        ),
        ({"report_only": True}, "Reporting stalled jobs every 20 s, recovering none: emq:a, emq:b."),
    ],
)
def test_the_boot_says_in_one_line_what_is_checked(client, caplog, settings, said):
    caplog.set_level(logging.INFO)
    broker, _ = equipped(client, interval=20_000, **settings)
    with booted(broker, "a", "a.DQ", "b"):
        (line,) = lines(caplog, "INFO")
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "about 5 s, of a lost host within 90 s (for locks of 30 s)."),
        ({"crash_grace": 10_000}, "about 12 s, of a lost host within 90 s (for locks of 30 s)."),
        ({"crash_detection": False}, "90 s (for locks of 30 s)."),
        ({"max_recovered_share": 0.5}, "about 5 s, of a lost host within 120 s (for locks of 30 s)."),
    ],
)
def test_the_boot_says_how_soon_a_job_of_a_killed_worker_is_back(client, caplog, settings, said):
    caplog.set_level(logging.INFO)
    broker = EchoMQBroker(client=client, middleware=[])
    broker.add_middleware(StalledCheckerMiddleware(**settings))
    broker.declare_queue("q")
    with working(broker):
        (line,) = [line for line in lines(caplog, "INFO") if line.startswith("Checking")]
    broker.close()
    assert line == f"Checking for stalled jobs every 30 s: emq:q. A job of a killed worker is back within {said}"


@pytest.mark.parametrize("settings", [{"crash_detection": False}, {"report_only": True}])
def test_nobody_is_looked_for_where_that_is_off(client, settings):
    text = registration("dead", 10**9, client.info("server")["run_id"])
    register(client, text)
    broker, _ = equipped(client, interval=100, crash_grace=100, **settings)
    with booted(broker, "q"):
        time.sleep(0.2)
    assert registered(client) == {text: "there"}


def test_a_cluster_client_of_the_broker_without_a_hash_tag_is_one_error(monkeypatch, client, caplog):
    monkeypatch.setattr("redis.cluster.RedisCluster", type(client))
    broker, _ = equipped(None)
    broker.client = client
    with booted(broker, "q"):
        assert sweepers() == []
    (line,) = lines(caplog, "ERROR", "CRITICAL")
    assert "hash tag" in line
