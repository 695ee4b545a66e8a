"""What somebody at a dashboard, which is the `bullmq` package of npm, does to the jobs of Dramatiq."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.middleware import Retries

from dramatiq_echomq import EchoMQBroker

from ..support.faults import Log, recording_actor, running, settled
from ..support.job_data import add, id_of
from ..support.queue_data import state
from ..support.servers import wait_until


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def broker(client, log):
    broker = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)])
    recording_actor(broker, log)
    return broker


def on_job(node, message: dramatiq.Message, call: str):
    return node.run(f'const job = await queue("q").getJob("{id_of(message)}"); return (await job.{call}) ?? null')


def test_a_delayed_message_that_is_promoted_runs_at_once(node, broker, log):
    message = add(broker, 1, delay=3_600_000)
    with running(broker):
        on_job(node, message, "promote()")
        wait_until(settled(broker, 1))
    assert log.ran == [1]


def test_a_delayed_message_whose_delay_is_changed_runs_when_it_is_due_then(node, broker, log):
    message = add(broker, 1, delay=3_600_000)
    with running(broker):
        on_job(node, message, "changeDelay(200)")
        wait_until(settled(broker, 1))
    assert log.ran == [1]


def test_a_message_whose_priority_is_changed_runs_before_others(node, broker, log):
    add(broker, 1, broker_priority=5)
    urgent = add(broker, 2, broker_priority=9)
    on_job(node, urgent, "changePriority({ priority: 1 })")
    with running(broker, threads=1):
        wait_until(settled(broker, 2))
    assert log.ran == [2, 1]


def test_failed_messages_that_are_tried_again_run_again(node, broker, log):
    message = add(broker, "bad")
    with running(broker):
        wait_until(settled(broker, 0, failed=1))
        on_job(node, message, 'retry("failed")')
        wait_until(lambda: len(log.ran) == 2)
        wait_until(settled(broker, 0, failed=1))
        node.run('await queue("q").retryJobs({ state: "failed" })')
        wait_until(lambda: len(log.ran) == 3)
        wait_until(settled(broker, 0, failed=1))


def test_a_message_that_was_removed_is_not_run(node, broker, log):
    removed, kept = add(broker, 1), add(broker, 2)
    on_job(node, removed, "remove()")
    with running(broker):
        wait_until(settled(broker, 1))
    assert log.ran == [2]
    assert id_of(removed) not in state(broker.client)
    assert id_of(kept) in state(broker.client)


def test_a_message_that_runs_cannot_be_removed(node, broker, log):
    log.gate.clear()
    message = add(broker, 1)
    with running(broker):
        wait_until(lambda: broker.get_queue_message_counts("q").active == 1)
        error = node.run(
            f"""const job = await queue("q").getJob("{id_of(message)}");
            try {{ await job.remove() }} catch (error) {{ return error.message }}"""
        )
        assert "locked" in error
        log.gate.set()
        wait_until(settled(broker, 1))


def test_a_queue_that_is_drained_or_obliterated_goes_on(node, broker, log):
    for number in range(10):
        add(broker, number, delay=3_600_000 if number % 2 else None)
    node.run('await queue("q").drain(true)')
    assert settled(broker, 0)()
    add(broker, 10)
    node.run('await queue("q").obliterate({ force: true })')
    node.run('await queue("q").resume()')
    with running(broker):
        add(broker, 11)
        wait_until(settled(broker, 1))
    assert log.ran == [11]


def test_an_obliterated_queue_does_not_stop_a_worker_that_runs_its_jobs(node, broker, log):
    log.gate.clear()
    for number in range(6):
        add(broker, number)
    with running(broker):
        wait_until(lambda: broker.get_queue_message_counts("q").active == 2)
        node.run('await queue("q").obliterate({ force: true })')
        node.run('await queue("q").resume()')
        log.gate.set()
        add(broker, 6)
        wait_until(lambda: 6 in log.ran)
        wait_until(settled(broker, 1))
    assert not state(broker.client)["locks"]


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_jobs_are_active_than_the_global_concurrency_allows(node, broker, log, client, limit):
    node.run(f'await queue("q").setGlobalConcurrency({limit})')
    for number in range(12):
        add(broker, number, **({"broker_priority": 3} if number % 3 == 0 else {}))
    log.gate.clear()
    with running(broker, threads=4):
        wait_until(lambda: client.llen("emq:q:active") == limit)
        log.gate.set()
        most = limit
        while not settled(broker, 12)():
            most = max(most, client.llen("emq:q:active"))
    assert most == limit
    assert sorted(log.ran) == list(range(12))


def test_a_worker_of_each_kind_shares_a_queue_without_running_a_job_twice(node, broker, log, client):
    count = 200
    with node.worker("q", "finish", concurrency=4, lockDuration=30_000) as peer, running(broker, threads=4):
        peer.wait_for("ready")
        for number in range(count):
            add(broker, number, delay=50 if number % 5 == 0 else None)
        wait_until(settled(broker, count))
        wait_until(lambda: sum(said[0] == "completed" for said in peer.said) + len(log.ran) == count)
    assert log.ran
    assert len(set(log.ran)) == len(log.ran)
