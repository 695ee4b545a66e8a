"""Parents of flows, made by the `bullmq` package of npm, whose child stalls out."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import StalledChecker

from ..support.peer import await_lock_end, node_of_its_own
from ..support.servers import wait_until

#: The parents by name, with the flag of the child that stalls out.
FLAGS = {
    "strict": "failParentOnFailure: true",
    "lax": "continueParentOnFailure: true",
    "ignoring": "ignoreDependencyOnFailure: true",
    "patient": "ignoreDependencyOnFailure: true",
    "removing": "removeDependencyOnFailure: true",
    "plain": "",
}
#: The parents that have another child, which is not due for an hour.
OF_TWO = ("lax", "patient")


@pytest.fixture(scope="module")
def own():
    with node_of_its_own() as own:
        yield own


@pytest.fixture(scope="module")
def node(own):
    return own[0]


@pytest.fixture(scope="module")
def parents(own):
    """The ids of parents by name, after a child of each has stalled out."""
    node, client = own
    ids = {}
    for name, flag in FLAGS.items():
        ids[name] = node.run(
            f"""const child = (opts) => ({{ name: "child", queueName: "children", data: {{}}, opts }});
            const children = [child({{ {flag} }})];
            if ({json.dumps(name in OF_TWO)}) children.push(child({{ delay: 3600000 }}));
            return (await flow().add({{ name: "{name}", queueName: "parents", children }})).job.id"""
        )
    children = node.run('return (await queue("children").getWaiting()).map((job) => job.id)')
    with node.worker("children", "hold", concurrency=len(children)) as holder:
        for child in children:
            holder.wait_for("took", child)
    await_lock_end(client, "children", *children)
    checker = StalledChecker(client, max_stalled_count=0)
    checker.check("children")
    assert checker.check("children").failed == len(children)
    return ids


def parent_state(node, job_id: str) -> str:
    return node.run(f'return queue("parents").getJobState("{job_id}")')


def test_a_parent_can_read_why_the_children_failed_that_it_did_not_wait_for(node, parents):
    def failures(name):
        return node.run(f'return (await queue("parents").getJob("{parents[name]}")).getFailedChildrenValues()')

    for name in ("lax", "ignoring", "patient"):
        assert list(failures(name).values()) == ["job stalled more than allowable limit"]
    assert failures("removing") == {}


def test_each_parent_learns_of_the_failure_as_its_flag_says(node, parents):
    with node.worker("parents", "finish") as worker:
        worker.wait_for("took", parents["lax"])  # BullMQ completes it only once it has removed its other child
        for name in ("ignoring", "removing"):
            worker.wait_for("completed", parents[name])
        wait_until(lambda: parent_state(node, parents["strict"]) == "failed")
        for name in ("plain", "patient"):
            assert parent_state(node, parents[name]) == "waiting-children"
    assert ["took", parents["strict"]] not in worker.said

    strict = node.run(f'return queue("parents").getJob("{parents["strict"]}")')
    assert strict["failedReason"].startswith("child emq:children:")
