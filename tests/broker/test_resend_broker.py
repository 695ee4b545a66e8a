"""A script of the broker that is sent again because its reply was lost counts once."""

from __future__ import annotations

import pytest

from dramatiq_echomq.broker.jobs import FetchedJob, NewJob, Outcome
from dramatiq_echomq.broker.queue import Fetch, JobQueue
from dramatiq_echomq.broker.replies import FAILED_INSTEAD, FINISHED, NOT_OWNED, Finished
from dramatiq_echomq.broker.rules import Rules
from dramatiq_echomq.protocol.keys import QueueKeys

from ..support.job_data import JOB
from ..support.proxy import SendsTwice
from ..support.queue_data import put, state

pytestmark = pytest.mark.usefixtures("clock")
NO_RULES = Rules()
KEEPS_NONE = Rules(keep_completed=0, keep_failed=0)


def a_queue(client, finish_rules: Rules = NO_RULES) -> JobQueue:
    return JobQueue(QueueKeys("q"), client, client, finish_rules)


def fetch(plain_client, count: int) -> list[FetchedJob]:
    """Jobs that were fetched, once."""
    return a_queue(plain_client).finish_and_fetch([], Fetch("call", count)).jobs


def held(plain_client, *job_ids: str) -> list[FetchedJob]:
    put(plain_client, wait=[*reversed(job_ids)], jobs=dict.fromkeys(job_ids, JOB))
    return fetch(plain_client, len(job_ids))


def finish(queue, job: FetchedJob, target: str, value: str, *, trace: str = "") -> Finished:
    return queue.finish_and_fetch([(job, Outcome(target, value, trace))]).finished[0]


def adds(queue, plain_client):
    return queue.add([NewJob("new", "work", b"{}")])


def adds_delayed(queue, plain_client):
    return queue.add([NewJob("new", "work", b"{}", when=1_800_000_000_000), NewJob("soon", "work", b"{}", when="+9")])


def adds_prioritized(queue, plain_client):
    return queue.add([NewJob("new", "work", b"{}", priority=3)])


def adds_one_that_was_taken_in_between(queue, plain_client):
    queue.add([NewJob("new", "work", b"{}")])
    fetch(plain_client, 1)
    return queue.add([NewJob("new", "work", b"{}")])


def adds_many(queue, plain_client):
    return queue.add([NewJob(f"new{number}", "work", b"{}") for number in range(500)])


def completes(queue, plain_client):
    job, _ = held(plain_client, "a", "b")
    return finish(queue, job, "completed", "1")


def completes_and_removes(queue, plain_client):
    queue.rules = KEEPS_NONE
    finished = completes(queue, plain_client)
    assert finished.outcome == FINISHED
    return finished


def fails_and_removes(queue, plain_client):
    queue.rules = KEEPS_NONE
    finished = fails(queue, plain_client)
    assert finished.outcome == FINISHED
    return finished


def fails(queue, plain_client):
    job, _ = held(plain_client, "a", "b")
    return finish(queue, job, "failed", "broke", trace="[]")


def completes_a_child(queue, plain_client):
    put(plain_client, waiting_children={"p": 1}, jobs={"p": JOB}, **{"p:dependencies": {"emq:q:a", "emq:q:x"}})
    put(plain_client, wait=["a"], jobs={"a": {**JOB, "parentKey": "emq:q:p"}})
    return finish(queue, fetch(plain_client, 1)[0], "completed", "1")


def cannot_complete_before_its_children(queue, plain_client):
    put(plain_client, **{"a:dependencies": {"emq:q:x"}})
    finished = completes(queue, plain_client)
    assert finished.outcome == FAILED_INSTEAD
    return finished


def gives_back(queue, plain_client):
    return queue.requeue(held(plain_client, "a", "b", "c"))


def retries(queue, plain_client):
    put(plain_client, failed={"f": 5}, jobs={"f": JOB})
    queue.retry("f")


def purges(queue, plain_client):
    put(plain_client, wait=[str(at) for at in range(1_500)], meta={"version": "echomq:1"})
    queue.purge()


def pauses(queue, plain_client):
    put(plain_client, wait=["b", "a"])
    queue.set_paused(True)
    plain_client.delete("emq:q:events")


def resumes(queue, plain_client):
    put(plain_client, wait=["b"], paused=["a"], meta={"paused": "1"})
    queue.set_paused(False)
    plain_client.delete("emq:q:events")


CALLS = [
    adds,
    adds_many,
    adds_delayed,
    adds_prioritized,
    adds_one_that_was_taken_in_between,
    completes,
    completes_and_removes,
    completes_a_child,
    cannot_complete_before_its_children,
    fails,
    fails_and_removes,
    gives_back,
    retries,
    purges,
    pauses,
    resumes,
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_sent_twice_leaves_what_one_does(client, call):
    once = call(a_queue(client), client), state(client)
    client.flushdb()

    twice = call(a_queue(SendsTwice(client)), client), state(client)

    assert twice == once


def test_a_job_that_another_worker_finished_is_no_repetition(client):
    [job] = held(client, "a")
    queue = a_queue(client)
    finish(queue, job, "completed", "1")

    assert finish(queue, job, "completed", "2").outcome == NOT_OWNED
    assert finish(queue, job, "failed", "2").outcome == NOT_OWNED

    assert state(client)["a"]["returnvalue"] == "1"
