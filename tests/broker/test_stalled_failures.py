"""A stall that ends in failure is a failure as Dramatiq knows it: what hears of it, hook by hook."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.results import ResultFailure, Results
from dramatiq.results.backends import StubBackend

from dramatiq_echomq import EchoMQBroker, JobFailed, JobStalled, StalledCheckerMiddleware
from dramatiq_echomq.broker.failure_hooks import NOT_TOLD

from ..support.brokers import lines, working
from ..support.failures import HEARD, WAYS, Hooks, by_sweep, check, lose_worker
from ..support.job_data import id_of
from ..support.queue_data import LIMIT, state
from ..support.servers import wait_until


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


def test_a_parent_whose_child_has_failed_is_no_stall(client, full_broker, hooks):
    @dramatiq.actor(broker=full_broker)
    def work():
        pass

    sent, reason = work.send(), "child emq:other:1 failed"
    hooks.calls.clear()
    client.hset(f"emq:default:{id_of(sent)}", mapping={"defa": reason})
    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert hooks.names == HEARD
    error = hooks.calls[1][2]["exception"]
    assert (type(error), error.reason, str(error)) == (JobFailed, reason, reason)
    assert state(client, "default")[id_of(sent)]["failedReason"] == reason


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


def test_a_worker_with_the_checker_tells_of_it_all(client, full_broker, hooks, told, caplog):
    backend = StubBackend()
    full_broker.add_middleware(Results(backend=backend))
    full_broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100, max_stalled_count=0))

    @dramatiq.actor(broker=full_broker, store_results=True, on_failure="told")
    def work():
        pass

    sent = work.send()
    lose_worker(client, id_of(sent), stalls=0)

    with working(full_broker, queues={"default"}):
        with pytest.raises(ResultFailure, match="JobStalled"):
            sent.get_result(backend=backend, block=True, timeout=20_000)
        wait_until(told)

    assert [name for name, message, _ in hooks.calls if message.message_id == sent.message_id][-4:] == HEARD
    assert lines(caplog, "WARNING", "CRITICAL") == []
