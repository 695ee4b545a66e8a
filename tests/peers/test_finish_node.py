"""What the `bullmq` package of npm learns of the end of a job, beside its own workers as a control."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dramatiq
import pytest
from dramatiq.middleware import Retries

from dramatiq_echomq import EchoMQBroker

from ..support.faults import running
from ..support.queue_data import state
from ..support.servers import wait_until

LARGE = 50_000


@contextmanager
def our_worker(node, client, queue: str = "q") -> Iterator[threading.Event]:
    """A Dramatiq worker, and a gate that its actor "slow" waits at."""
    broker = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)], metrics_max_data_points=60)
    gate = threading.Event()

    @dramatiq.actor(broker=broker, queue_name=queue)
    def work(size):
        if size < 0:
            raise ValueError("x" * -size)
        return "x" * size

    @dramatiq.actor(broker=broker, queue_name=queue)
    def slow(number):
        gate.wait(20)
        return number

    with running(broker):
        yield gate


@contextmanager
def their_worker(node, client) -> Iterator[None]:
    """The control."""
    with node.worker("q", "finish", lockDuration=30_000, metrics={"maxDataPoints": 60}) as worker:
        worker.wait_for("ready")
        yield None


WORKERS = pytest.mark.parametrize("worker", [our_worker, their_worker])


def wait_until_finished(node, size: int) -> list:
    """Add a job, and return how the program that waits for it got its result, and what the job itself holds.

    The job starts when the program has found it unfinished: else it would read the result in the job.
    """
    return node.run(
        f"""await queue("told").pause();
        const job = await queue("told").add("work", {size});
        const look = job.scripts.isFinished.bind(job.scripts);
        const looked = new Promise((tell) => {{
            job.scripts.isFinished = (...id) => look(...id).finally(tell);
        }});
        const waited = job.waitUntilFinished(listener("told"), 20_000);
        await looked;
        await queue("told").resume();
        const told = await waited.then((value) => ["completed", value], (error) => ["failed", error.message]);
        const {{ returnvalue, failedReason }} = await queue("told").getJob(job.id);
        return [...told, returnvalue ?? failedReason]"""
    )


def test_who_waits_for_a_job_learns_of_its_end_however_large_the_result_is(node, client):
    node.listen(client, "told")
    with our_worker(node, client, "told"):
        assert wait_until_finished(node, 10) == ["completed", "x" * 10, "x" * 10]
        assert wait_until_finished(node, LARGE) == ["completed", None, "x" * LARGE]
        state_, told, reason = wait_until_finished(node, -19_000)
        assert (state_, reason) == ("failed", "ValueError: " + "x" * 19_000)
        assert told == reason[:10_000]
        assert wait_until_finished(node, 20) == ["completed", "x" * 20, "x" * 20]
    assert client.memory_usage("emq:told:events", samples=0) < 60_000


@WORKERS
@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("failParentOnFailure: true", "Cannot complete job {} because it has at least one failed child"),
        ("", "Job {} has pending dependencies"),
    ],
    ids=["failed", "pending"],
)
def test_a_parent_that_is_retried_by_hand_cannot_complete_before_its_children(node, client, worker, flag, reason):
    parent = node.run(
        f"""const flow_ = await flow().add({{ name: "work", queueName: "q", data: 1,
        children: [{{ name: "work", queueName: "children", data: -1, opts: {{ {flag} }} }}] }});
        return flow_.job.id"""
    )
    client.zrem("emq:q:waiting-children", parent)
    client.zadd("emq:q:failed", {parent: 1})
    if flag:
        [child] = client.smembers(f"emq:q:{parent}:dependencies")
        client.delete(f"emq:q:{parent}:dependencies")
        client.zadd(f"emq:q:{parent}:unsuccessful", {child: 1})

    with worker(node, client):
        node.run(f'await (await queue("q").getJob("{parent}")).retry("failed")')
        wait_until(lambda: client.hget(f"emq:q:{parent}", "failedReason"))

    assert client.hget(f"emq:q:{parent}", "failedReason").decode().startswith(reason.format(parent))
    assert client.zscore("emq:q:failed", parent)


def test_the_last_job_that_came_while_another_ran_runs_in_its_turn_and_no_other(node, client):
    def add(number: int) -> None:
        opts = '{ deduplication: { id: "x", keepLastIfActive: true } }'
        node.run(f'await queue("q").add("slow", {number}, {opts})')

    with our_worker(node, client) as gate:
        add(1)
        wait_until(lambda: client.llen("emq:q:active") == 1)
        add(2)
        add(3)
        gate.set()
        wait_until(lambda: client.zcard("emq:q:completed") == 2)
        add(4)
        wait_until(lambda: client.zcard("emq:q:completed") == 3)

    found = state(client)
    assert sorted(found[job_id]["returnvalue"] for job_id in found["completed"]) == ["1", "3", "4"]
    assert not [name for name in found if name.startswith(("dn:", "de:"))]


@WORKERS
def test_metrics_are_those_of_bullmqs_own_workers(node, client, worker):
    with worker(node, client):
        for _ in range(3):
            node.run('await queue("q").add("work", 1)')
        wait_until(lambda: client.zcard("emq:q:completed") == 3)
        earlier = client.time()[0] * 1000 - 120_000
        client.hset("emq:q:metrics:completed", mapping={"prevTS": earlier, "prevCount": 0})
        client.delete("emq:q:metrics:completed:data")  # a new minute may have begun
        node.run('await queue("q").add("work", 1)')
        wait_until(lambda: client.zcard("emq:q:completed") == 4)
        metrics = wait_until(lambda: node.run('return await queue("q").getMetrics("completed")'))

    last = max(int(job["finishedOn"]) for job in state(client).values() if "finishedOn" in job)
    minutes = last // 60_000 - earlier // 60_000  # two, or three if another one has begun
    assert (metrics["meta"]["count"], metrics["data"], metrics["count"]) == (4, [0] * (minutes - 1) + [3], minutes)


def test_listeners_hear_that_no_retries_are_left(node, client):
    node.listen(client, "exhausted")
    with our_worker(node, client, "exhausted"):
        said = node.run(
            """const heard = new Promise((resolve) => listener("exhausted").once("retries-exhausted", resolve));
            const job = await queue("exhausted").add("work", -1, { attempts: 1 });
            const said = await heard;
            return [said.jobId === job.id, said.attemptsMade]"""
        )
    assert said == [True, "1"]
