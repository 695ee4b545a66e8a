from __future__ import annotations

import pytest
import redis
from dramatiq import Worker, actor
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

from ..support.brokers import Recorder, booted, lines, sweepers, working
from ..support.queue_data import put, state
from ..support.servers import wait_until

INTERVAL = 100


def equip(broker, **parameters) -> Recorder:
    recorder = Recorder()
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=INTERVAL, **parameters))
    broker.add_middleware(recorder)
    return recorder


def test_a_worker_of_a_stub_broker_recovers_jobs_by_url(client, redis_url):
    broker = StubBroker()
    recorder = equip(broker, url=redis_url)
    broker.declare_queue("q")
    put(client, active=["a"], jobs={"a": {}})

    with working(broker):
        wait_until(lambda: recorder.named("recovered") == [("q", ("a",))])
    assert state(client)["wait"] == ["a"]
    assert sweepers() == []


def test_a_worker_of_a_redis_broker_uses_the_clients_of_its_broker(client, redis_url):
    broker = RedisBroker(url=redis_url)
    recorder = equip(broker)
    broker.declare_queue("q")
    put(client, active=["a"], jobs={"a": {}})

    with working(broker):
        wait_until(lambda: recorder.named("recovered") == [("q", ("a",))])
    assert sweepers() == []
    broker.close()


def test_dramatiqs_own_messages_are_run_beside_the_checks(client, redis_url):
    broker = RedisBroker(url=redis_url)
    recorder = equip(broker)
    done = []

    @actor(broker=broker, queue_name="q")
    def work(number):
        done.append(number)

    with working(broker):
        for number in range(20):
            work.send(number)
        wait_until(lambda: sorted(done) == list(range(20)) and len(recorder.named("check")) > 2)
    broker.close()


def test_a_worker_of_a_rabbitmq_broker_recovers_jobs_by_url(client, redis_url):
    broker = RabbitmqBroker(url="amqp://localhost:1")
    recorder = equip(broker, url=redis_url)
    put(client, active=["a"], jobs={"a": {}})

    with booted(broker, "q", "q.DQ"):
        wait_until(lambda: recorder.named("recovered") == [("q", ("a",))])
    assert {queue for queue, _ in recorder.named("check")} == {"q"}
    assert sweepers() == []


def test_a_worker_of_a_rabbitmq_broker_that_cannot_be_reached_still_checks(client, redis_url, caplog):
    broker = RabbitmqBroker(url="amqp://127.0.0.1:1?connection_attempts=1&retry_delay=0")
    recorder = equip(broker, client=client, queues=["q"])
    worker = Worker(broker, worker_timeout=50, worker_threads=1)
    worker.start()
    try:
        wait_until(lambda: recorder.named("check"))
    finally:
        worker.stop()
    assert sweepers() == []


@pytest.mark.parametrize("decode_responses", [False, True])
def test_a_client_may_decode_responses_or_not(redis_url, client, decode_responses):
    put(client, active=["a"], jobs={"a": {}})
    chosen = redis.Redis.from_url(redis_url, decode_responses=decode_responses)
    broker = StubBroker()
    recorder = equip(broker, client=chosen)

    with booted(broker, "q"):
        wait_until(lambda: recorder.named("recovered") == [("q", ("a",))])
    chosen.close()


def test_the_given_client_goes_before_the_brokers(client, redis_url):
    broker = RedisBroker(url="redis://127.0.0.1:1")
    recorder = equip(broker, client=client)
    with booted(broker, "q"):
        wait_until(lambda: recorder.named("check"))


@pytest.mark.parametrize("report_only", [True, False])
@pytest.mark.parametrize("kind", [RedisBroker, RabbitmqBroker, EchoMQBroker], ids=lambda kind: kind.__name__)
def test_the_boot_says_that_messages_of_another_broker_are_not_recovered(client, caplog, kind, report_only):
    caplog.set_level("INFO")
    broker = kind(middleware=[], **({"url": "amqp://localhost:1"} if kind is RabbitmqBroker else {"client": client}))
    broker.add_middleware(StalledCheckerMiddleware(client=client, report_only=report_only))
    with booted(broker, "q"):
        (line,) = (line for line in lines(caplog, "INFO") if "stalled jobs" in line)
    said = line.endswith(
        " These are the jobs of EchoMQ and BullMQ programs under emq: "
        f"the messages of this {kind.__name__} are not among them."
    )
    assert said is (kind is not EchoMQBroker)
    assert ("are not among them" in line) is said


@pytest.mark.parametrize("has_checker", [True, False])
def test_a_worker_of_an_echomq_broker_without_checks_says_that_it_brings_nothing_back(client, caplog, has_checker):
    caplog.set_level("INFO")
    broker = EchoMQBroker(client=client, middleware=[])
    if has_checker:
        broker.add_middleware(StalledCheckerMiddleware())

    with booted(broker, "q"):
        pass

    (line,) = (line for line in lines(caplog, "INFO") if "jobs" in line)
    if has_checker:
        assert line.startswith("Checking for stalled jobs")
    else:
        assert line.startswith("This worker brings back no jobs of dead workers: its broker has no StalledChecker")
    broker.close()
