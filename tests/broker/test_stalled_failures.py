"""A stall that ends in failure is a failure as Dramatiq knows it: what hears of it, hook by hook."""

from __future__ import annotations

import time

import dramatiq
import pytest
import redis
from dramatiq.middleware import Interrupt, Middleware, SkipMessage
from dramatiq.middleware.prometheus import Prometheus
from dramatiq.results import ResultFailure, Results
from dramatiq.results.backends import RedisBackend, StubBackend
from prometheus_client import Counter, Gauge

from dramatiq_echomq import EchoMQBroker, JobStalled, StalledCheckerMiddleware
from dramatiq_echomq.broker.failure_hooks import NOT_TOLD

from ..support.brokers import lines, working
from ..support.failures import LIMIT, Hooks, check, lose_worker, sent_to
from ..support.job_data import id_of
from ..support.queue_data import put, state
from ..support.servers import wait_until

#: What middleware hears of a stalled-out job: no more, and nothing twice.
HEARD = ["before_process_message", "after_process_message", "before_nack", "after_nack"]


@pytest.fixture
def hooks(full_broker):
    hooks = Hooks()
    full_broker.add_middleware(hooks)
    return hooks


@pytest.fixture
def told(full_broker):
    """What the actor `told`, which has a queue of its own, was sent."""

    @dramatiq.actor(broker=full_broker, queue_name="told", actor_name="told")
    def actor(message, exception):
        pass

    return lambda: sent_to(full_broker.client, "told")


def by_sweep(client, broker, message) -> None:
    """A check fails the job."""
    lose_worker(client, id_of(message))
    check(client, broker)


def at_fetch(client, broker, message) -> None:
    """A sweeper of BullMQ leaves a job that stalled too often in wait, to be failed at its next fetch."""
    client.hset(f"emq:default:{id_of(message)}", mapping={"defa": LIMIT, "stc": 2, "pb": "host:1"})
    with working(broker, queues={"default"}):
        broker.join("default", timeout=10_000)


WAYS = pytest.mark.parametrize("stall_out", [by_sweep, at_fetch])


@WAYS
def test_each_hook_hears_once_what_happened(client, full_broker, hooks, stall_out):
    @dramatiq.actor(broker=full_broker)
    def work(x):
        runs.append(x)

    runs: list[int] = []
    sent = work.send(5)
    hooks.calls.clear()

    stall_out(client, full_broker, sent)

    assert (hooks.names, runs) == (HEARD, [])
    for name, message, said in hooks.calls:
        assert (message.message_id, message.args, message.queue_name) == (sent.message_id, (5,), "default")
        assert said["failed"] is (name != "before_process_message")
    error = hooks.calls[1][2]["exception"]
    assert isinstance(error, JobStalled)
    assert (error.reason, error.stalls, error.worker, str(error)) == (LIMIT, 2, "host:1", LIMIT)
    assert [message._exception for _, message, _ in hooks.calls] == [error] * 4
    job = state(client, "default")[id_of(sent)]
    assert (job["failedReason"], "defa" in job, "stacktrace" in job) == (LIMIT, False, False)
    assert list(state(client, "default")["failed"]) == [id_of(sent)]


@WAYS
def test_a_stalled_out_job_is_not_retried_but_its_retries_are_exhausted(client, full_broker, told, stall_out):
    @dramatiq.actor(broker=full_broker, on_retry_exhausted="told", max_retries=7, retry_when=lambda *_: True)
    def work():
        pass

    sent = work.send()
    stall_out(client, full_broker, sent)

    [(message, numbers)] = told()
    assert (message["message_id"], numbers) == (sent.message_id, {"retries": 0, "max_retries": 7})
    assert {name for name in state(client, "default") if "-" in name and ":" not in name} == {id_of(sent)}


def test_an_actor_that_may_throw_it_has_no_exhausted_retries(client, full_broker, told):
    @dramatiq.actor(broker=full_broker, on_retry_exhausted="told", throws=JobStalled)
    def work():
        pass

    by_sweep(client, full_broker, work.send())
    assert told() == []


@WAYS
@pytest.mark.parametrize(
    ("of_actor", "of_message"), [({"on_failure": "told"}, {}), ({}, {"on_failure": "told"})], ids=["actor", "message"]
)
def test_on_failure_is_enqueued_as_for_an_exception(client, full_broker, told, stall_out, of_actor, of_message):
    @dramatiq.actor(broker=full_broker, **of_actor)
    def work(x):
        pass

    sent = work.send_with_options(args=(5,), **of_message)
    stall_out(client, full_broker, sent)

    [(message, exception)] = told()
    assert (message["message_id"], message["args"], message["actor_name"]) == (sent.message_id, [5], "work")
    assert exception == {"type": "JobStalled", "message": LIMIT}


@WAYS
@pytest.mark.parametrize("kind", ["stub", "redis"])
def test_a_result_raises_at_once(client, full_broker, kind, stall_out):
    backend = StubBackend() if kind == "stub" else RedisBackend(client=client)
    full_broker.add_middleware(Results(backend=backend))

    @dramatiq.actor(broker=full_broker, store_results=True)
    def work():
        pass

    sent = work.send()
    stall_out(client, full_broker, sent)

    started = time.monotonic()
    with pytest.raises(ResultFailure, match=f"JobStalled: {LIMIT}"):
        sent.get_result(backend=backend, block=True, timeout=10_000)
    assert time.monotonic() - started < 5


def value_of(metric: Counter | Gauge) -> float:
    return next(iter(metric.collect())).samples[0].value


@WAYS
def test_the_metrics_of_dramatiq_count_it_and_none_is_left_in_progress(client, full_broker, monkeypatch, stall_out):
    for variable in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        monkeypatch.setenv(variable, "")  # they are set by the middleware, and go with this test
    metrics = Prometheus()
    metrics.after_process_boot(full_broker)
    full_broker.add_middleware(metrics)
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)

    stall_out(client, full_broker, full_broker.actors["work"].send())

    assert value_of(metrics.inprogress_messages) == 0
    for counter in (metrics.total_messages, metrics.total_errored_messages, metrics.total_rejected_messages):
        assert value_of(counter) == 1


class Recorded(Middleware):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def after_process_message(self, broker, message, *, result=None, exception=None):
        self.heard.append("after")


class Skips(Recorded):
    def before_process_message(self, broker, message):
        raise SkipMessage("I know this one")


class Breaks(Recorded):
    def before_process_message(self, broker, message):
        raise LookupError("out of luck")


@WAYS
@pytest.mark.parametrize(("middleware", "logged"), [(Skips(), 0), (Breaks(), 1)], ids=["skips", "breaks"])
def test_a_middleware_that_did_not_see_it_begin_does_not_see_it_end(
    client, full_broker, hooks, caplog, middleware, logged, stall_out
):
    middleware.heard.clear()
    full_broker.add_middleware(middleware, before=type(full_broker.middleware[0]))
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.actors["work"].send()
    hooks.calls.clear()

    stall_out(client, full_broker, sent)

    assert (middleware.heard, hooks.names) == ([], HEARD)
    assert len([record for record in caplog.records if record.levelname == "CRITICAL"]) == logged


@WAYS
def test_an_error_in_a_hook_is_logged_as_dramatiq_does_and_the_others_hear(
    client, full_broker, hooks, caplog, stall_out
):
    """An actor that does not exist is to be told of the failure."""
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.actors["work"].send_with_options(on_failure="nobody")
    hooks.calls.clear()

    stall_out(client, full_broker, sent)

    assert hooks.names == HEARD
    [line] = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert line.startswith("Unexpected failure in after_process_message of <dramatiq.middleware.callbacks.Callbacks")
    assert list(state(client, "default")["failed"]) == [id_of(sent)]


def test_what_guards_the_run_of_an_actor_hears_nothing(client, full_broker, monkeypatch):
    """The thread that tells is no worker's: nothing may interrupt it."""

    def must_not_be_called(*args, **kwargs):
        raise AssertionError

    for middleware in NOT_TOLD:
        for hook in ("before_process_message", "after_process_message"):
            monkeypatch.setattr(middleware, hook, must_not_be_called)
        assert any(isinstance(one, middleware) for one in full_broker.middleware)
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    hooks = Hooks()
    full_broker.add_middleware(hooks)
    sent = full_broker.actors["work"].send_with_options(max_age=1, time_limit=1, notify_shutdown=True)
    hooks.calls.clear()
    by_sweep(client, full_broker, sent)
    assert hooks.names == HEARD


@WAYS
def test_a_process_without_the_actor_tells_of_the_nack(client, full_broker, hooks, caplog, stall_out):
    sent = full_broker.enqueue(dramatiq.Message("default", "elsewhere", (), {}, {}))
    full_broker.declare_queue("default")
    hooks.calls.clear()

    stall_out(client, full_broker, sent)

    assert hooks.names == ["before_nack", "after_nack"]
    assert [record for record in caplog.records if record.levelname == "CRITICAL"] == []


def test_a_broker_without_middleware_tells_nobody(client, full_broker, told):
    broker = EchoMQBroker(client=client, middleware=[])
    for actor in full_broker.actors.values():
        broker.declare_actor(actor)

    sent = broker.enqueue(dramatiq.Message("default", "told", (), {}, {"on_failure": "told"}))
    by_sweep(client, broker, sent)

    assert told() == []


def test_nobody_is_told_of_a_stall_that_is_survived(client, full_broker, hooks):
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    lose_worker(client, id_of(full_broker.actors["work"].send()), stalls=0)
    hooks.calls.clear()

    check(client, full_broker)

    assert hooks.calls == []


@pytest.mark.parametrize("data", ['{"args": [1]}', "[1]", "true", '"text"', "-1", "{", ""])
def test_jobs_that_are_no_messages_are_not_told_of(client, full_broker, hooks, data, caplog):
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    put(client, "default", jobs={"odd": {"data": data}})
    lose_worker(client, "odd")
    sent = full_broker.actors["work"].send()
    lose_worker(client, id_of(sent))
    hooks.calls.clear()

    check(client, full_broker)

    assert {message.message_id for _, message, _ in hooks.calls} == {sent.message_id}
    assert lines(caplog, "WARNING", "CRITICAL") == []


def test_a_message_with_an_option_that_cannot_be_is_a_warning_and_the_next_is_told_of(
    client, full_broker, hooks, caplog
):
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    odd = full_broker.actors["work"].message()
    odd.options["throws"] = "x"
    put(client, "default", jobs={"odd\nid": {"name": "work", "data": odd.encode().decode()}})
    lose_worker(client, "odd\nid")
    sent = full_broker.actors["work"].send()
    lose_worker(client, id_of(sent))
    hooks.calls.clear()

    check(client, full_broker)

    assert {message.message_id for _, message, _ in hooks.calls} == {sent.message_id}
    assert lines(caplog, "WARNING", "CRITICAL") == ["The failure of stalled job 'odd\\nid' could not be told."]


class Away(Middleware):
    """Finds its server away for now, or is interrupted as if an actor ran."""

    def __init__(self, error: BaseException) -> None:
        self.is_away = True
        self.error = error

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if self.is_away:
            raise self.error


@pytest.mark.parametrize("error", [redis.ConnectionError("away"), Interrupt()], ids=["outage", "interrupt"])
def test_what_could_not_be_told_is_told_later(client, full_broker, hooks, caplog, error):
    away = Away(error)
    full_broker.add_middleware(away)
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.actors["work"].send()
    hooks.calls.clear()

    by_sweep(client, full_broker, sent)
    assert "after_nack" not in hooks.names
    assert lines(caplog, "WARNING") == [
        f"The failure of stalled job '{id_of(sent)}' is told later: {type(error).__name__}"
    ]

    away.is_away = False
    hooks.calls.clear()
    client.zadd("emq:default:stalled-check:untold", {id_of(sent): 0})  # as when its lease has ended
    check(client, full_broker)
    assert hooks.names == HEARD


def test_a_worker_with_the_checker_tells_of_it_all(client, full_broker, hooks, told, caplog):
    backend = StubBackend()
    full_broker.add_middleware(Results(backend=backend))
    full_broker.add_middleware(StalledCheckerMiddleware(stalled_interval=50, max_stalled_count=0))

    @dramatiq.actor(broker=full_broker, store_results=True, on_failure="told")
    def work():
        pass

    sent = work.send()
    lose_worker(client, id_of(sent), stalls=0)

    with working(full_broker, queues={"default"}):
        with pytest.raises(ResultFailure, match="JobStalled"):
            sent.get_result(backend=backend, block=True, timeout=10_000)
        wait_until(told)

    assert [name for name, message, _ in hooks.calls if message.message_id == sent.message_id][-4:] == HEARD
    assert lines(caplog, "WARNING", "CRITICAL") == []
