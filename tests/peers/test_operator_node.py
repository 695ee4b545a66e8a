"""What operators see and do, beside the `bullmq` package of npm and bull-board: both come to the same."""

from __future__ import annotations

import pytest

from dramatiq_echomq import QueueInspector, StalledChecker

from ..support.queue_data import put, state
from ..support.servers import wait_until

META = {"version": "echomq:1", "opts.maxLenEvents": "10000"}
CHILD = {"parentKey": "emq:parents:p", "parent": '{"id":"p","queueKey":"emq:parents"}'}


def put_twice(client, **structures) -> None:
    """The same queue for us, under ``ours``, and for BullMQ, under ``theirs``."""
    for queue in ("ours", "theirs"):
        put(client, queue, meta=META, **structures)


def assert_equal(client) -> None:
    ours, theirs = state(client, "ours"), state(client, "theirs")
    ours["meta"]["version"] = theirs["meta"]["version"]  # which each program writes as its own
    assert ours == theirs


@pytest.mark.parametrize(
    "structures",
    [
        {"jobs": {"a": {}, "b": {}}, "wait": ["b", "a"]},
        {"jobs": {"a": {}}, "delayed": {"a": 4096}},
        {"jobs": {"a": {}}, "prioritized": {"a": 1}},
        {"jobs": {"a": {"deid": "d"}}, "failed": {"a": 1}, "de:d": "a"},
        {"jobs": {"a": {"deid": "d"}}, "completed": {"a": 1}, "de:d": "b", "a:logs": ["x"]},
        {"jobs": {"a": {}}, "active": ["a"]},
        {"jobs": {"a": {}}, "active": ["a"], "locks": ["a"]},
        {"jobs": {"repeat:s:5": {"rjk": "s"}}, "delayed": {"repeat:s:5": 5}, "repeat": {"s": 5}},
    ],
    ids=["wait", "delayed", "prioritized", "failed", "completed", "active", "locked", "scheduled"],
)
def test_a_job_is_removed_as_bullmq_removes_it(client, node, structures):
    put_twice(client, **structures)
    job_id = next(iter(structures["jobs"]))

    done = QueueInspector(client).remove("ours", [job_id]).done
    removed = node.run(f"return queue('theirs').remove('{job_id}').catch(() => 0)")

    assert bool(done) == (removed == 1)
    assert_equal(client)


@pytest.mark.parametrize("others", [[], ["emq:x:1"]], ids=["last", "one-of-two"])
def test_a_parent_goes_on_as_with_bullmq_when_its_child_is_removed(client, node, others):
    put_twice(client, jobs={"a": CHILD}, wait=["a"])
    outcomes = []
    for queue in ("ours", "theirs"):
        put(client, "parents", jobs={"p": {}}, waiting_children={"p": 1}, meta=META)
        client.sadd("emq:parents:p:dependencies", f"emq:{queue}:a", *others)
        if queue == "ours":
            QueueInspector(client).remove("ours", ["a"])
        else:
            node.run("return queue('theirs').remove('a')")
        outcomes.append(state(client, "parents"))
        client.delete(*client.keys("emq:parents:*"))

    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "structures",
    [
        {"jobs": {"a": {"delay": "5000"}, "b": {}}, "wait": ["b"], "delayed": {"a": 4096}},
        {"jobs": {"a": {"delay": "5000", "priority": "3"}}, "delayed": {"a": 4096}},
        {"jobs": {"a": {"delay": "5000"}, "x": {}}, "delayed": {"a": 4096}, "active": ["x"]},
    ],
    ids=["waiting", "prioritized", "active"],
)
def test_a_job_is_promoted_as_bullmq_promotes_it(client, node, structures):
    put_twice(client, **structures)

    assert QueueInspector(client).promote("ours", ["a"]).done == ("a",)
    node.run("await (await queue('theirs').getJob('a')).promote()")

    assert_equal(client)


def test_both_see_the_same_jobs_and_counts(client, node):
    put(client, jobs={"a": {}, "b": {}, "c": {}}, wait=["a"], failed={"b": 1}, delayed={"c": 4096 * 10**13}, meta=META)

    counts = node.run('return queue("q").getJobCounts("wait", "failed", "delayed", "active")')
    info = QueueInspector(client).queue("q").counts

    assert counts == {"wait": info.wait, "failed": info.failed, "delayed": info.delayed, "active": info.active}


@pytest.mark.parametrize(
    ("structures", "act"),
    [
        ({"failed": {"a": 1}, "jobs": {"a": {"ats": "1", "atm": "1", "processedOn": "1", "finishedOn": "2"}}}, "retry"),
        ({"delayed": {"a": 2**60}, "jobs": {"a": {"opts": '{"delay": 1e15}', "delay": "1"}}}, "promote"),
    ],
    ids=["retried", "promoted"],
)
def test_a_job_that_bullmq_brings_back_waits_since_then(client, node, structures, act):
    put(client, meta=META, **structures)
    before = QueueInspector(client).queue("q").at

    node.run(f"await (await queue('q').getJob('a')).{act}()")

    job = QueueInspector(client).queue("q").oldest_waiting
    assert before <= job.waiting_since <= before + 60_000
    assert job.waiting_since_is_known


def test_workers_of_bullmq_are_seen_under_their_names(client, node):
    put(client, meta=META)
    inspector = QueueInspector(client)
    with node.worker("q", "finish", name="host:1"), node.worker("q", "finish"):
        wait_until(lambda: len(inspector.workers("q")) == 2)

        assert {worker.name for worker in inspector.workers("q")} == {"host:1", ""}


def test_a_dashboard_shows_the_history_of_a_job(client, node):
    held = {"pb": "host:7", "processedOn": "1700000000000"}
    put(client, jobs={"a": held}, active=["a"], stalled={"a"}, meta=META)
    StalledChecker(client).check("q")

    (line,) = node.run("return board('/api/queues/:queueName/:jobId/logs', { queueName: 'q', jobId: 'a' })")

    assert "stall 1 of at most 1: held by host:7 since 2023-11-14T22:13:20.000Z, back to wait" in line
