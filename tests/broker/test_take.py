"""What a fetch leaves in Redis."""

from __future__ import annotations

import pytest
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker

from ..support.job_data import JOB, add, added, fetched, id_of, take
from ..support.queue_data import META, NOW, WOKEN, as_data, dump, event, put, state

pytestmark = pytest.mark.usefixtures("clock")

REASON = "child emq:q:c failed"


def active(job_id: str) -> dict:
    return event("active", job_id, prev="waiting")


def test_a_job_that_is_taken_is_in_active_with_a_lock(client, broker):
    job = add(broker, 1)
    client.delete("emq:q:events", "emq:q:marker")

    _, [taken] = take(broker)

    assert (taken.message_id, taken.args, id_of(taken)) == (job.message_id, (1,), id_of(job))
    assert state(client) == as_data(
        active=[id_of(job)],
        locks=[id_of(job)],
        jobs={id_of(job): {**added(job), **fetched()}},
        meta=META,
        id="1",
        events=[active(id_of(job))],
    )


@pytest.mark.parametrize(("settings", "ttl"), [({}, 30_000), ({"lock_duration": 7_000}, 7_000)])
def test_its_lock_lasts_as_long_as_the_settings_say(client, settings, ttl):
    broker = EchoMQBroker(client=client, middleware=[], **settings)
    job = add(broker)

    take(broker)

    assert ttl - 5_000 < client.pttl(f"emq:q:{id_of(job)}:lock") <= ttl


def test_the_token_of_every_fetch_is_another_one(client, broker):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))

    take(broker, 2)
    take(broker, 3)

    assert len({client.get(f"emq:q:{job_id}:lock") for job_id in "abc"}) == 3


def test_jobs_are_taken_from_the_tail_of_wait_then_by_priority(client, broker):
    put(client, wait=["second", "first"], prioritized={"low": 3 * 2**32, "high": 2**32 + 5}, pc="5")
    put(client, jobs=dict.fromkeys(["first", "second", "high", "low"], JOB))

    _, messages = take(broker, 4)

    assert [id_of(message) for message in messages] == ["first", "second", "high", "low"]
    assert state(client)["active"] == ["low", "high", "second", "first"]


@pytest.mark.parametrize(("wait", "marker"), [(["b", "a"], WOKEN), (["a"], None)])
def test_the_marker_is_put_back_when_more_is_waiting(client, broker, wait, marker):
    put(client, wait=wait, jobs=dict.fromkeys(wait, JOB))

    take(broker)

    found = state(client)
    assert found.get("marker") == marker
    assert (found["active"], found.get("wait", [])) == (["a"], wait[:-1])


def test_attempts_started_count_on(client, broker):
    put(client, wait=["a"], jobs={"a": {**JOB, "ats": "4", "pb": "another:1"}})

    take(broker)

    assert state(client)["a"] == as_data(jobs={"a": {**JOB, **fetched(5)}})["a"]


def test_an_id_without_a_job_is_dropped_and_makes_no_ghost(client, broker):
    put(client, wait=["a", "ghost"], jobs={"a": JOB})

    _, messages = take(broker, 2)

    assert [id_of(message) for message in messages] == ["a"]
    assert state(client) == as_data(active=["a"], locks=["a"], jobs={"a": {**JOB, **fetched()}}, events=[active("a")])


@pytest.mark.parametrize(
    "queue",
    [
        {"paused": ["a"], "meta": {"paused": "1"}},
        {"wait": ["a"], "meta": {"paused": "1"}},  # where BullMQ 6 leaves it
        {"prioritized": {"a": 2**32}, "pc": "1", "meta": {"paused": "1"}},
        {"wait": ["a"], "meta": {"concurrency": "1"}, "active": ["b"]},
        {"prioritized": {"a": 2**32}, "pc": "1", "meta": {"concurrency": "1"}, "active": ["b"]},
    ],
    ids=["paused", "paused by another", "paused, of priorities", "at its concurrency", "at it, of priorities"],
)
def test_nothing_is_taken_from_a_queue_that_is(client, broker, queue):
    put(client, jobs={"a": JOB}, **queue)
    before = state(client)

    assert take(broker)[1] == []

    assert state(client) == before


def test_no_more_is_taken_than_the_concurrency_allows(client, broker):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB), meta={"concurrency": "2"})

    _, messages = take(broker, 3)

    assert [id_of(message) for message in messages] == ["a", "b"]
    found = state(client)
    assert (found["wait"], found["active"]) == (["c"], ["b", "a"])
    assert "marker" not in found


@pytest.mark.parametrize(
    "queue",
    [{"meta": {"version": "echomq:2"}}, {"active": {"a": 1}}, {"wait": "text"}],
    ids=["EchoMQ 2", "active of the wrong type", "wait of the wrong type"],
)
def test_an_unfit_queue_is_left_alone_and_tried_again_later(client, broker, queue):
    put(client, **queue)
    before = dump(client)

    with pytest.raises(ConnectionClosed, match="refuses"):
        take(broker)

    assert dump(client) == before


def test_a_job_of_the_wrong_type_is_dropped(client, broker):
    put(client, wait=["a", "odd"], jobs={"a": JOB}, odd=["not", "a", "hash"])

    _, messages = take(broker, 2)

    assert [id_of(message) for message in messages] == ["a"]


def test_a_due_job_is_made_available_and_taken(client, broker):
    put(client, delayed={"a": NOW * 4096 + 4095}, jobs={"a": {**JOB, "delay": "5"}}, marker={"1": NOW})

    take(broker)

    assert state(client) == as_data(
        active=["a"],
        locks=["a"],
        jobs={"a": {**JOB, **fetched(delay="0")}},
        marker={"1": NOW},
        events=[event("waiting", "a", prev="delayed"), active("a")],
    )


def test_a_job_that_is_not_due_stays(client, broker):
    put(client, delayed={"a": (NOW + 1) * 4096}, jobs={"a": {**JOB, "delay": "5"}})
    before = state(client)

    assert take(broker)[1] == []

    assert state(client) == before


def test_due_jobs_are_taken_after_those_that_wait_in_the_order_in_which_they_were_due(client, broker):
    put(client, wait=["waiting"], delayed={"late": NOW * 4096, "early": (NOW - 5) * 4096})
    put(client, jobs=dict.fromkeys(["waiting", "late", "early"], JOB))

    _, messages = take(broker, 3)

    assert [id_of(message) for message in messages] == ["waiting", "early", "late"]


def test_a_due_job_with_a_priority_is_prioritized(client, broker):
    put(client, wait=["w"], delayed={"a": NOW * 4096}, jobs={"w": JOB, "a": {**JOB, "priority": "2"}})

    take(broker)

    found = state(client)
    assert (found["prioritized"], found["active"], found["marker"]) == ({"a": 2 * 2**32 + 1}, ["w"], WOKEN)


def test_a_due_job_of_a_paused_queue_waits_in_paused(client, broker):
    put(client, delayed={"a": NOW * 4096}, jobs={"a": JOB}, meta={"paused": "1"})

    assert take(broker)[1] == []

    assert state(client) == as_data(
        paused=["a"],
        jobs={"a": {**JOB, "delay": "0"}},
        meta={"paused": "1"},
        events=[event("waiting", "a", prev="delayed")],
    )


def test_at_most_a_thousand_due_jobs_move_in_one_call(client, broker):
    put(client, delayed={str(at): (NOW - 2_000 + at) * 4096 for at in range(1_500)})
    for at in range(1_500):
        client.hset(f"emq:q:{at}", mapping=JOB)

    _, [message] = take(broker)

    assert id_of(message) == "0"
    assert (client.llen("emq:q:wait"), client.zcard("emq:q:delayed")) == (999, 500)


def test_a_due_id_without_a_job_makes_no_ghost(client, broker):
    put(client, delayed={"ghost": NOW * 4096})

    assert take(broker)[1] == []

    assert state(client) == as_data(events=[event("waiting", "ghost", prev="delayed")])


def test_a_job_with_a_deferred_failure_is_failed_and_not_run(client, broker):
    put(client, wait=["a", "poisoned"], jobs={"a": JOB, "poisoned": {**JOB, "defa": REASON}})

    _, messages = take(broker, 2)

    assert [id_of(message) for message in messages] == ["a"]
    failed = {"atm": "1", "finishedOn": str(NOW), "failedReason": REASON}
    assert state(client) == as_data(
        active=["a"],
        failed={"poisoned": NOW},
        locks=["a"],
        jobs={"a": {**JOB, **fetched()}, "poisoned": {**JOB, **fetched(), **failed}},
        events=[
            active("poisoned"),
            active("a"),
            event("failed", "poisoned", failedReason=REASON, prev="active"),
            event("retries-exhausted", "poisoned", attemptsMade="1"),
        ],
    )
