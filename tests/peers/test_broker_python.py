"""A Dramatiq worker and programs on the `bullmq` package of PyPI, on the same queues."""

from __future__ import annotations

import asyncio
import sys

import pytest
from dramatiq.middleware import Retries

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import declare_resize_and_bad
from ..support.faults import running
from ..support.job_data import add, id_of
from ..support.peer import Peer, is_idle
from ..support.servers import wait_until

bullmq = pytest.importorskip("bullmq")


@pytest.fixture
def queue(redis_url, client):
    """Run something with a BullMQ queue: ``queue(lambda q: q.add("work", {}))``."""

    def use(work):
        async def run():
            queue = bullmq.Queue("q", {"connection": redis_url, "prefix": "emq"})
            try:
                return await work(queue)
            finally:
                await queue.close()

        return asyncio.run(run())

    return use


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)])

    declare_resize_and_bad(broker)
    return broker


def finished(queue, job_id: str):
    wait_until(lambda: queue(lambda q: q.getJobState(job_id)) in ("completed", "failed"))

    async def job(q):
        return await bullmq.Job.fromId(q, job_id)

    return queue(job)


@pytest.mark.parametrize(
    ("data", "called_with"),
    [({"args": [1, "ü"], "kwargs": {"x": 2}}, [[1, "ü"], {"x": 2}]), ({"a": 1}, [[{"a": 1}], {}]), ([1], [[[1]], {}])],
)
def test_what_bullmq_adds_runs_an_actor_with_its_arguments(queue, broker, data, called_with):
    job_id = queue(lambda q: q.add("resize", data)).id
    with running(broker):
        assert finished(queue, job_id).returnvalue == called_with


def test_bullmq_sees_why_an_actor_failed(queue, broker):
    job_id = queue(lambda q: q.add("bad", {"args": []})).id
    unknown = queue(lambda q: q.add("nobody", {})).id
    with running(broker):
        job = finished(queue, job_id)
        assert job.failedReason == "ValueError: it is bad"
        assert job.attemptsMade == 1
        assert 'raise ValueError("it is bad")' in job.stacktrace[0]
        assert "nobody" in finished(queue, unknown).failedReason
    assert queue(lambda q: q.getJobCounts("failed", "active", "wait")) == {"failed": 2, "active": 0, "wait": 0}


def test_a_delayed_and_a_prioritized_job_of_bullmq_run(queue, broker, client):
    with running(broker):
        wait_until(lambda: is_idle(client))
        delayed = queue(lambda q: q.add("resize", [], {"delay": 300})).id
        urgent = queue(lambda q: q.add("resize", [], {"priority": 5})).id
        job = finished(queue, delayed)
        finished(queue, urgent)
    assert 300 <= job.processedOn - job.timestamp < 9_000  # for which a worker waits that is not woken


def test_bullmq_and_dramatiq_pause_and_resume_each_other(queue, broker, client):
    with running(broker):
        queue(lambda q: q.pause())
        message = add(broker, actor="resize")
        assert broker.get_queue_message_counts("q").paused == 1
        wait_until(lambda: is_idle(client))
        queue(lambda q: q.resume())
        finished(queue, id_of(message))
        broker.pause("q")
        assert queue(lambda q: q.isPaused())
        broker.resume("q")
        assert not queue(lambda q: q.isPaused())


def test_a_bullmq_worker_runs_what_dramatiq_enqueues(redis_url, client, broker):
    plain, late = add(broker, 1), add(broker, 2, delay=300)
    with Peer(sys.executable, "worker.py", redis_url, "q", "finish") as finisher:
        finisher.wait_for("completed", id_of(plain))
        finisher.wait_for("completed", id_of(late))
    assert broker.get_queue_message_counts("q").completed == 2
