"""Parents of flows, made by the `bullmq` package of npm, whose child stalls out."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from .peer import await_lock_end
from .servers import wait_until

FLAGS = {
    "strict": "failParentOnFailure",
    "lax": "continueParentOnFailure",
    "ignoring": "ignoreDependencyOnFailure",
    "removing": "removeDependencyOnFailure",
}


@pytest.fixture
def parents(node, client):
    """The ids of parents by name, after the child of each has stalled out. `plain` has a child without a flag."""
    ids = {}
    for name in (*FLAGS, "plain"):
        flag = f"{FLAGS[name]}: true" if name in FLAGS else ""
        ids[name] = node.run(
            f"""const child = {{ name: "child", queueName: "children", data: {{}}, opts: {{ {flag} }} }};
            return (await flow().add({{ name: "{name}", queueName: "parents", children: [child] }})).job.id"""
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


def test_each_parent_learns_of_the_failure_as_its_flag_says(node, parents):
    with node.worker("parents", "finish") as worker:
        for name in ("lax", "ignoring", "removing"):
            worker.wait_for("completed", parents[name])
        wait_until(lambda: parent_state(node, parents["strict"]) == "failed")
        assert parent_state(node, parents["plain"]) == "waiting-children"
    assert ["took", parents["strict"]] not in worker.said

    (failed,) = node.run('return queue("parents").getFailed()')
    assert failed["id"] == parents["strict"]
    assert failed["failedReason"].startswith("child emq:children:")


def test_a_parent_can_read_why_the_children_failed_that_it_did_not_wait_for(node, parents):
    def failures(name):
        return node.run(f'return (await queue("parents").getJob("{parents[name]}")).getFailedChildrenValues()')

    for name in ("lax", "ignoring"):
        assert list(failures(name).values()) == ["job stalled more than allowable limit"]
    assert failures("removing") == {}
