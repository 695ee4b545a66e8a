"""Flows of the `bullmq` package of npm with children that are Dramatiq's."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.middleware import Retries

from dramatiq_echomq import EchoMQBroker

from ..support.faults import running
from ..support.servers import wait_until


@pytest.fixture
def worker(client):
    broker = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)])

    @dramatiq.actor(broker=broker, queue_name="children")
    def good(number):
        return number * 2

    @dramatiq.actor(broker=broker, queue_name="children")
    def bad():
        raise ValueError("it is bad")

    @dramatiq.actor(broker=broker, queue_name="parents")
    def parent():
        return "all done"

    with running(broker) as worker:
        yield worker


def add_flow(node, *children: str) -> str:
    return node.run(
        f"""return (await flow().add({{ name: "parent", queueName: "parents", data: {{ args: [] }},
        children: [{", ".join(children)}] }})).job.id"""
    )


def child(name: str, data: str, flag: str = "") -> str:
    return f'{{ name: "{name}", queueName: "children", data: {data}, opts: {{ {flag} }} }}'


def state_of(node, job_id: str) -> str:
    return node.run(f'return queue("parents").getJobState("{job_id}")')


def test_children_that_complete_release_their_parent_with_their_results(node, worker):
    job_id = add_flow(node, child("good", "1"), child("good", "2"))
    wait_until(lambda: state_of(node, job_id) == "completed")
    values = node.run(f'return (await queue("parents").getJob("{job_id}")).getChildrenValues()')
    assert sorted(values.values()) == [2, 4]
    assert node.run(f'return (await queue("parents").getJob("{job_id}")).returnvalue') == "all done"


def test_the_parent_of_a_node_worker_wakes_when_the_last_child_completes(node, client):
    broker = EchoMQBroker(client=client, middleware=[])

    @dramatiq.actor(broker=broker, queue_name="children")
    def good(number):
        return number

    job_id = add_flow(node, child("good", "1"), child("good", "2"))
    with node.worker("parents", "finish", drainDelay=3600) as finisher, running(broker):
        finisher.wait_for("completed", job_id)


def test_a_failing_child_fails_its_parent_when_it_says_so(node, worker):
    job_id = add_flow(node, child("bad", "{ args: [] }", "failParentOnFailure: true"), child("good", "1"))
    wait_until(lambda: state_of(node, job_id) == "failed")
    reason = node.run(f'return (await queue("parents").getJob("{job_id}")).failedReason')
    assert reason.startswith("child emq:children:")


@pytest.mark.parametrize("flag", ["continueParentOnFailure", "ignoreDependencyOnFailure", "removeDependencyOnFailure"])
def test_a_failing_child_lets_its_parent_go_on_when_it_says_so(node, worker, flag):
    job_id = add_flow(node, child("bad", "{ args: [] }", f"{flag}: true"))
    wait_until(lambda: state_of(node, job_id) == "completed")


def test_a_failing_child_that_says_nothing_keeps_its_parent_waiting(node, worker, client):
    job_id = add_flow(node, child("bad", "{ args: [] }"), child("good", "1"))
    wait_until(lambda: client.zcard("emq:children:failed") + client.zcard("emq:children:completed") == 2)
    assert state_of(node, job_id) == "waiting-children"
