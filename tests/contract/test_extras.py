"""Dramatiq's contract: Prometheus, encoders, and what is told to middleware."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.encoder import JSONEncoder, PickleEncoder
from dramatiq.middleware import default_middleware

from dramatiq_echomq.broker.stalled_failures import StalledFailures

from ..support.brokers import value_of, working
from ..support.queue_data import put, state


@pytest.fixture
def pickled():
    dramatiq.set_encoder(PickleEncoder())
    yield
    dramatiq.set_encoder(JSONEncoder())


class Point:
    def __init__(self, x):
        self.x = x


def test_a_bytes_encoder_serves_queues_of_dramatiq_alone(client, full_broker, pickled):
    @dramatiq.actor(broker=full_broker, max_retries=1, min_backoff=1, max_backoff=1)
    def work(point, numbers):
        seen.append((point.x, numbers))
        if len(seen) == 1:
            raise RuntimeError("not yet")

    seen: list = []
    work.send_with_options(args=(Point(7), {1, 2}), delay=10)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == [(7, {1, 2})] * 2
    assert client.zcard("emq:default:completed") == 2


@pytest.mark.parametrize("data", [b"\x80\x05.", b"\x80\x05not a pickle", b"cos\nnothing\n.", b"{}", b""], ids=repr)
def test_data_that_an_encoder_cannot_decode_fails_its_job(client, full_broker, pickled, data):
    @dramatiq.actor(broker=full_broker)
    def work(value):
        seen.append(value)

    seen: list = []
    put(client, "default", wait=["bad"])
    client.hset("emq:default:bad", mapping={"name": "work", "data": data})
    work.send(1)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == ([{}, 1] if data == b"{}" else [1])
    assert ("failed" in state(client, "default")) is (data != b"{}")


class Told(dramatiq.Middleware):
    """Notes what it is told of messages."""

    def __init__(self) -> None:
        self.signals: list[str] = []


def _note(signal):
    def hook(self, broker, message, *args, **kwargs):
        self.signals.append(signal)

    return hook


SIGNALS = ("enqueue", "process_message", "skip_message", "ack", "nack", "delay_message")
for _signal in SIGNALS:
    for _when in ("before", "after"):
        setattr(Told, f"{_when}_{_signal}", _note(f"{_when}_{_signal}"))

ENQUEUED = ["before_enqueue", "after_enqueue"]
PROCESSED = ["before_process_message", "after_process_message"]


@pytest.mark.parametrize(
    ("options", "ending"), [({}, ["before_ack", "after_ack"]), ({"fail": True}, ["before_nack", "after_nack"])]
)
@pytest.mark.parametrize("delay", [None, 50])
def test_middleware_is_told_of_a_message_in_dramatiqs_order(full_broker, options, ending, delay):
    @dramatiq.actor(broker=full_broker, max_retries=0)
    def work(fail=False):
        if fail:
            raise RuntimeError("it broke")

    told = Told()
    full_broker.add_middleware(told)
    work.send_with_options(kwargs=options, delay=delay)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert told.signals == ENQUEUED + PROCESSED + ending


def test_a_middleware_error_of_before_enqueue_stops_the_message(client, full_broker):
    class Refuse(dramatiq.Middleware):
        def before_enqueue(self, broker, message, delay):
            raise dramatiq.middleware.MiddlewareError("not this one")

    @dramatiq.actor(broker=full_broker)
    def work():
        pass

    full_broker.add_middleware(Refuse())

    with pytest.raises(dramatiq.middleware.MiddlewareError):
        work.send()

    assert client.keys() == []


def test_the_broker_has_dramatiqs_middleware_by_default(full_broker):
    own = [StalledFailures]  # the last one, that tells the others of jobs that checks have failed
    assert [type(middleware) for middleware in full_broker.middleware] == [*default_middleware, *own]


def test_dramatiqs_prometheus_middleware_counts(full_broker, tmp_path, monkeypatch):
    prometheus = pytest.importorskip("dramatiq.middleware.prometheus")
    monkeypatch.setattr(prometheus, "DB_PATH", str(tmp_path))
    for variable in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        monkeypatch.setenv(variable, str(tmp_path))
    metrics = prometheus.Prometheus()
    full_broker.add_middleware(metrics)
    full_broker.emit_after("process_boot")

    @dramatiq.actor(broker=full_broker, max_retries=1, min_backoff=1, max_backoff=1)
    def work(fail):
        if fail:
            raise RuntimeError("it broke")

    for fail in (True, False, False):
        work.send(fail)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert value_of(metrics.total_messages) == 4
    assert value_of(metrics.total_errored_messages) == 2
    assert value_of(metrics.total_retried_messages) == 1
    assert value_of(metrics.total_rejected_messages) == 1
    assert value_of(metrics.inprogress_messages) == 0
