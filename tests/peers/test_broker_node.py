"""A Dramatiq worker and programs on the `bullmq` package of npm, on the same queues."""

from __future__ import annotations

import pytest
from dramatiq.middleware import Callbacks, Retries
from dramatiq.results import Results
from dramatiq.results.backends import StubBackend

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import declare_resize_and_bad
from ..support.faults import running
from ..support.job_data import add, id_of
from ..support.peer import is_idle
from ..support.servers import wait_until


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(
        client=client, middleware=[Callbacks(), Retries(max_retries=0), Results(backend=StubBackend())]
    )

    declare_resize_and_bad(broker, store_results=True)
    return broker


@pytest.fixture
def worker(broker):
    with running(broker) as worker:
        yield worker


def finished(node, job_id: str, queue: str = "q"):
    """The job as Node.js sees it once it has ended."""
    state = f'return queue("{queue}").getJobState("{job_id}")'
    wait_until(lambda: node.run(state) in ("completed", "failed"))
    return node.run(f'return queue("{queue}").getJob("{job_id}")')


@pytest.mark.parametrize(
    ("data", "called_with"),
    [
        ('{ args: [1, "ü"], kwargs: { x: 2 } }', [[1, "ü"], {"x": 2}]),
        ("{ args: [1] }", [[1], {}]),
        ("{ kwargs: { x: null } }", [[], {"x": None}]),
        ("{ width: 3 }", [[{"width": 3}], {}]),
        ("{}", [[{}], {}]),
        ("{ args: 1 }", [[{"args": 1}], {}]),
        ("[1, 2]", [[[1, 2]], {}]),
        ('"text"', [["text"], {}]),
        ("7.5", [[7.5], {}]),
        ("null", [[None], {}]),
        ("false", [[False], {}]),
    ],
)
def test_what_node_adds_runs_an_actor_with_its_arguments(node, worker, data, called_with):
    job_id = node.run(f'return (await queue("q").add("resize", {data})).id')
    assert finished(node, job_id)["returnvalue"] == called_with


def test_node_waits_for_the_result_of_an_actor(node, worker, client):
    node.listen(client, "q")
    result = node.run(
        """const job = await queue("q").add("resize", { args: [1], kwargs: { x: 2 } });
        return job.waitUntilFinished(listener("q"), 10000)"""
    )
    assert result == [[1], {"x": 2}]


def test_node_sees_why_and_where_an_actor_failed(node, worker, client):
    node.listen(client, "q")
    error = node.run(
        """const job = await queue("q").add("bad", { args: [] });
        try { await job.waitUntilFinished(listener("q"), 10000) } catch (error) { return [job.id, error.message] }"""
    )
    job = finished(node, error[0])
    assert error[1] == job["failedReason"] == "ValueError: it is bad"
    assert 'raise ValueError("it is bad")' in job["stacktrace"][0]
    assert job["attemptsMade"] == job["attemptsStarted"] == 1
    assert node.run('return (await queue("q").getFailed()).length') == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "nobody", "data": "[]"}, "nobody"),
        ({"name": "resize", "data": "{never closed"}, "neither a Dramatiq message nor JSON"),
        ({"name": "resize", "data": b"\xff\xfe"}, "neither a Dramatiq message nor JSON"),
        ({"name": "resize"}, "neither a Dramatiq message nor JSON"),
        ({"data": "[]"}, "''"),
    ],
)
def test_what_cannot_be_run_is_failed_with_a_reason_and_the_next_job_runs(node, client, worker, fields, reason):
    job_id = node.run('await queue("q").pause(); return (await queue("q").add("x", {})).id')
    client.delete(f"emq:q:{job_id}")
    client.hset(f"emq:q:{job_id}", mapping={"opts": "{}", "timestamp": "1", **fields})
    after = node.run('return (await queue("q").add("resize", {})).id')
    node.run('await queue("q").resume()')

    assert finished(node, after)["returnvalue"] == [[{}], {}]
    wait_until(lambda: client.zscore("emq:q:failed", job_id))
    assert reason in client.hget(f"emq:q:{job_id}", "failedReason").decode()


def test_a_delayed_job_of_node_runs_when_it_is_due(node, client, worker):
    wait_until(lambda: is_idle(client))
    job_id = node.run('return (await queue("q").add("resize", {}, { delay: 300 })).id')
    job = finished(node, job_id)
    assert 300 <= job["processedOn"] - job["timestamp"] < 9_000  # for which a worker waits that is not woken


def test_jobs_of_node_run_in_the_order_of_their_priorities(node, client, broker):
    ids = [
        node.run(f'return (await queue("q").add("resize", [], {{ priority: {priority} }})).id')
        for priority in (3, 1, 2, 1)
    ]
    with running(broker, threads=1):
        wait_until(lambda: client.zcard("emq:q:completed") == 4)
    activated = [
        fields[b"jobId"].decode() for _, fields in client.xrange("emq:q:events") if fields[b"event"] == b"active"
    ]
    assert activated == [ids[1], ids[3], ids[2], ids[0]]


def test_the_job_of_a_job_scheduler_of_node_completes(node, client, worker):
    job_id = node.run(
        """const job = await queue("q").upsertJobScheduler("daily", { every: 86400000 }, { name: "resize", data: [] });
        return job.id"""
    )
    assert finished(node, job_id)["returnvalue"] == [[[]], {}]
    assert node.run('return queue("q").getJobSchedulersCount()') == 1


def test_node_pauses_and_resumes_a_dramatiq_worker(node, client, broker, worker):
    node.run('await queue("q").pause()')
    message = add(broker, actor="resize")
    assert broker.get_queue_message_counts("q").paused == 1
    wait_until(lambda: is_idle(client))
    assert node.run('return queue("q").getJobCounts("paused", "active", "completed")') == {
        "paused": 1,
        "active": 0,
        "completed": 0,
    }
    node.run('await queue("q").resume()')
    assert finished(node, id_of(message))["returnvalue"] == [[], {}]


def test_dramatiq_pauses_and_resumes_a_node_worker(node, client, broker):
    broker.pause("q")
    assert node.run('return queue("q").isPaused()') is True
    first, second = add(broker, 1), add(broker, 2)
    with node.worker("q", "finish") as finisher:
        finisher.wait_for("ready")
        wait_until(lambda: is_idle(client))
        assert ["took", id_of(first)] not in finisher.said
        broker.resume("q")
        finisher.wait_for("completed", id_of(first))
        finisher.wait_for("completed", id_of(second))
    assert [job_id for what, *job_id in finisher.said if what == "took"] == [[id_of(first)], [id_of(second)]]


def test_a_node_worker_runs_what_dramatiq_enqueues(node, client, broker):
    urgent, plain = add(broker, 1, broker_priority=1), add(broker, 2)
    with node.worker("q", "finish", drainDelay=3600) as finisher:
        finisher.wait_for("completed", id_of(urgent))
        finisher.wait_for("completed", id_of(plain))
        wait_until(lambda: is_idle(client))
        late = add(broker, 3, delay=200)
        finisher.wait_for("completed", id_of(late))
        at_once = add(broker, 4)
        finisher.wait_for("completed", id_of(at_once))
    job = node.run(f'return queue("q").getJob("{id_of(late)}")')
    assert job["processedOn"] - job["timestamp"] >= 200
    assert (job["name"], job["data"]["args"]) == ("work", [3])
    assert broker.get_queue_message_counts("q").completed == 4


def test_queue_events_of_node_tell_what_a_dramatiq_worker_did(node, broker, client):
    node.run('events("q")')
    with running(broker):
        good, bad = id_of(add(broker, 1, actor="resize")), id_of(add(broker, actor="bad"))
        wait_until(lambda: client.zcard("emq:q:completed") + client.zcard("emq:q:failed") == 2)
    wait_until(lambda: {"completed", "failed"} <= {event for event, _ in node.run('return events("q")')})
    told = node.run('return events("q")')

    def of(job_id: str) -> list:
        return [
            [event, {name: value for name, value in said.items() if name != "jobId"}]
            for event, said in told
            if said["jobId"] == job_id
        ]

    activated = ["active", {"prev": "waiting"}]
    assert of(good) == [
        ["added", {"name": "resize"}],
        ["waiting", {}],
        activated,
        ["completed", {"returnvalue": [[1], {}], "prev": "active"}],
    ]
    assert of(bad)[2:] == [activated, ["failed", {"failedReason": "ValueError: it is bad", "prev": "active"}]]


def test_node_and_dramatiq_count_the_same(node, broker, client):
    for options in ({}, {"broker_priority": 2}, {"delay": 60_000}):
        add(broker, **options)
    counts = broker.get_queue_message_counts("q")
    assert node.run('return queue("q").getJobCounts("wait", "prioritized", "delayed", "active")') == {
        "wait": counts.waiting,
        "prioritized": counts.prioritized,
        "delayed": counts.delayed,
        "active": 0,
    }
