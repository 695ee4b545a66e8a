"""Dramatiq's contract: results, callbacks, pipelines and groups."""

from __future__ import annotations

import gc
import weakref

import dramatiq
import pytest
from dramatiq import group, pipeline
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import StubBackend as StubLimits
from dramatiq.results import ResultFailure, Results, ResultTimeout
from dramatiq.results.backends import RedisBackend, StubBackend

from ..support.brokers import working
from ..support.job_data import FAST
from ..support.queue_data import state
from ..support.servers import wait_until


@pytest.fixture(params=["stub", "redis"])
def backend(request, client):
    return StubBackend() if request.param == "stub" else RedisBackend(client=client)


@pytest.fixture
def results_broker(full_broker, backend):
    full_broker.add_middleware(Results(backend=backend))
    return full_broker


@pytest.fixture
def add(results_broker):
    @dramatiq.actor(broker=results_broker, store_results=True)
    def add(x, y):
        return x + y

    return add


def test_a_thread_that_is_idle_keeps_no_result_in_memory(full_broker):
    """Results may be large, or hold a connection."""
    made = []

    @dramatiq.actor(broker=full_broker)
    def work():
        result = type("Result", (), {})()
        made.append(weakref.ref(result))
        return result

    work.send()
    with working(full_broker):
        wait_until(lambda: made and gc.collect() is not None and made[0]() is None)


def test_a_result_is_stored(client, results_broker, add):
    message = add.send(1, 2)

    with working(results_broker):
        assert message.get_result(backend=results_broker.get_results_backend(), block=True) == 3
        results_broker.join("default", timeout=20_000)

    [job_id] = client.zrange("emq:default:completed", 0, -1)
    assert client.hget(f"emq:default:{job_id.decode()}", "returnvalue") == b"3"


def test_a_result_that_nobody_stores_is_the_return_value_of_the_job(client, full_broker):
    @dramatiq.actor(broker=full_broker)
    def work():
        return {"x": 1}

    work.send()

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    [job_id] = client.zrange("emq:default:completed", 0, -1)
    assert state(client, "default")[job_id.decode()]["returnvalue"] == '{"x": 1}'


def test_a_failure_is_stored_once_retries_are_over(results_broker, backend):
    @dramatiq.actor(broker=results_broker, store_results=True, max_retries=1, **FAST)
    def work():
        calls.append(1)
        raise ValueError("it broke")

    calls: list[int] = []
    message = work.send()

    with working(results_broker), pytest.raises(ResultFailure, match="ValueError: it broke"):
        message.get_result(backend=backend, block=True)

    assert len(calls) == 2


def test_a_skipped_message_has_none_for_a_result(results_broker, backend, add):
    class Skip(dramatiq.Middleware):
        def before_process_message(self, broker, message):
            raise dramatiq.middleware.SkipMessage("not today")

    results_broker.add_middleware(Skip())
    message = add.send(1, 2)

    with working(results_broker):
        assert message.get_result(backend=backend, block=True) is None
        results_broker.join("default", timeout=20_000)


def test_an_unknown_actor_has_no_result(results_broker, backend, add):
    message = dramatiq.Message(queue_name="default", actor_name="nobody", args=(), kwargs={}, options={})
    results_broker.enqueue(message)

    with working(results_broker):
        results_broker.join("default", timeout=20_000)

    with pytest.raises(ResultTimeout):
        message.get_result(backend=backend, block=True, timeout=10)


def test_success_and_failure_call_back(full_broker):
    @dramatiq.actor(broker=full_broker)
    def succeeded(message, result):
        seen.append((message["args"], result))

    @dramatiq.actor(broker=full_broker)
    def failed(message, exception):
        seen.append((message["args"], exception))

    @dramatiq.actor(broker=full_broker, on_success="succeeded", on_failure="failed", max_retries=0)
    def halve(number):
        if number % 2:
            raise ValueError("odd")
        return number // 2

    seen: list = []
    for number in (4, 5):
        halve.send(number)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == [([4], 2), ([5], {"type": "ValueError", "message": "odd"})]


def test_a_pipeline_hands_results_on(results_broker, backend, add):
    pipe = pipeline([add.message(1, 2), add.message(3), add.message(4)])

    with working(results_broker):
        assert pipe.run().get_result(block=True, timeout=20_000) == 10
        results_broker.join("default", timeout=20_000)

    assert list(pipe.get_results()) == [3, 6, 10]


def test_a_pipeline_may_be_delayed(results_broker, add):
    pipe = pipeline([add.message(1, 2), add.message(3)]).run(delay=100)

    with working(results_broker):
        assert pipe.get_result(block=True, timeout=20_000) == 6


def test_a_pipeline_ends_with_a_failure(results_broker, backend, add):
    @dramatiq.actor(broker=results_broker, store_results=True, max_retries=0)
    def fail(number):
        raise ValueError("it broke")

    pipe = add.message(1, 2) | fail.message() | add.message(3)
    pipe.run()

    with working(results_broker):
        results_broker.join("default", timeout=20_000)

    with pytest.raises(ResultFailure, match="it broke"):
        pipe.messages[1].get_result(backend=backend)
    with pytest.raises(ResultTimeout):
        pipe.get_result(block=True, timeout=10)


def test_a_group_runs_all_of_its_messages(results_broker, add):
    sums = group([add.message(number, number) for number in range(20)]).run()

    with working(results_broker, worker_threads=4):
        sums.wait(timeout=20_000)

    assert list(sums.get_results()) == [number * 2 for number in range(20)]


def test_a_group_of_pipelines_runs(results_broker, add):
    sums = group([add.message(1, 1) | add.message(number) for number in range(5)]).run(delay=20)

    with working(results_broker, worker_threads=4):
        assert list(sums.get_results(block=True, timeout=20_000)) == [2, 3, 4, 5, 6]


def test_the_callback_of_a_group_comes_once_all_are_done(full_broker):
    full_broker.add_middleware(GroupCallbacks(StubLimits()))

    @dramatiq.actor(broker=full_broker, **FAST)
    def work(number):
        if number == 3 and "failed" not in seen:
            seen.append("failed")
            raise RuntimeError("not yet")
        seen.append(number)

    @dramatiq.actor(broker=full_broker)
    def all_done():
        seen.append("all done")

    seen: list = []
    callbacks = group(work.message(number) for number in range(6))
    callbacks.add_completion_callback(all_done.message())
    callbacks.run()

    with working(full_broker, worker_threads=3):
        full_broker.join("default", timeout=20_000)

    assert sorted(seen[:-1], key=str) == [0, 1, 2, 3, 4, 5, "failed"]
    assert seen[-1] == "all done"
