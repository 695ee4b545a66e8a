"""Options of messages and actors: max_stalled_count, lock_duration, broker_priority."""

from __future__ import annotations

import json

import dramatiq
import pytest
from dramatiq import Middleware

from dramatiq_echomq import EchoMQBroker, StalledChecker
from dramatiq_echomq.broker.options import policy_for
from dramatiq_echomq.broker.queue import Fetch

from ..support.brokers import lines
from ..support.job_data import add, id_of, message, take
from ..support.queue_data import put, state

JOB = {"data": "[]"}


def declare(broker, **options) -> dramatiq.Actor:
    @dramatiq.actor(broker=broker, queue_name="q", **options)
    def work(*args):
        pass

    return work


def crash(client, actor: dramatiq.Actor) -> tuple[str, ...]:
    """Start the job that waits, and lose its worker. Returns the ids that a check failed."""
    broker = EchoMQBroker(client=client, middleware=[])
    broker.declare_actor(actor)
    _, [message] = take(broker)
    broker.emit_before("process_message", message)
    client.delete(f"emq:q:{id_of(message)}:lock")
    StalledChecker(client).check("q")
    failed_ids = StalledChecker(client).check("q").failed_ids
    broker.close()
    return failed_ids


@pytest.mark.parametrize(
    ("of_message", "of_actor", "crashes"),
    [(None, None, 2), (0, None, 1), (2, None, 3), (None, 0, 1), (None, 2, 3), (0, 3, 1), (3, 0, 4)],
)
@pytest.mark.parametrize("origin", ["dramatiq", "foreign"])
def test_a_job_survives_as_many_stalls_as_its_message_else_its_actor_else_the_checker_allows(
    client, broker, of_message, of_actor, crashes, origin
):
    actor = declare(broker, max_stalled_count=of_actor)
    if origin == "dramatiq":
        job_id = id_of(add(broker, max_stalled_count=of_message))
    else:
        job_id, opts = "1", {} if of_message is None else {"maxStalledCount": of_message}
        put(client, wait=["1"], jobs={"1": {**JOB, "opts": json.dumps(opts)}})

    assert [crash(client, actor) for _ in range(crashes)] == [()] * (crashes - 1) + [(job_id,)]

    assert state(client)[job_id]["stc"] == str(crashes)


def test_what_an_actor_says_counts_even_when_threads_fetch_while_it_is_declared(broker):
    """A queue that is declared has a consumer at once, and those of others ask at any moment."""

    class Asking(Middleware):
        def before_declare_actor(self, broker, actor):
            broker.policies  # noqa: B018

        after_declare_queue = after_declare_actor = before_declare_actor

    broker.add_middleware(Asking())
    declare(broker, actor_name="first", max_stalled_count=0)
    assert json.loads(broker.policies) == {"first": {"maxStalledCount": 0}}
    declare(broker, actor_name="second", lock_duration=9_000)
    assert json.loads(broker.policies) == {"first": {"maxStalledCount": 0}, "second": {"lockDuration": 9_000}}


def test_an_actor_may_be_declared_while_a_thread_asks_what_others_say(broker, monkeypatch):
    def and_another_one(*args):
        if len(broker.actors) < 9:
            declare(broker, actor_name=f"late{len(broker.actors)}", max_stalled_count=0)
        return policy_for(*args)

    declare(broker)
    monkeypatch.setattr("dramatiq_echomq.broker.options.policy_for", and_another_one)
    while len(broker.actors) < 9:
        broker.policies  # noqa: B018
    assert json.loads(broker.policies).keys() == broker.actors.keys() - {"work"}


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(1, 100), (99, 100), (99.5, 100), (100, 100), (250.9, 250), (0, 30_000), (-5, 30_000), ("x", 30_000)],
)
def test_no_lock_of_a_foreign_job_is_shorter_than_one_that_settings_allow(client, broker, duration, expected):
    put(client, wait=["1"], jobs={"1": {**JOB, "opts": json.dumps({"lockDuration": duration})}})

    [job] = broker.channel("q").queue.finish_and_fetch([], Fetch("w:0", 1)).jobs

    assert job.lock_duration == expected


@pytest.mark.parametrize(
    ("of_message", "of_actor", "expected"),
    [(None, None, 30_000), (9_000, None, 9_000), (None, 20_000, 20_000), (9_000, 20_000, 9_000)],
)
@pytest.mark.parametrize("origin", ["dramatiq", "foreign"])
def test_a_lock_lasts_as_long_as_its_message_else_its_actor_else_the_broker_says(
    client, broker, of_message, of_actor, expected, origin
):
    declare(broker, lock_duration=of_actor)
    if origin == "dramatiq":
        job_id = id_of(add(broker, lock_duration=of_message))
    else:
        job_id, opts = "1", {} if of_message is None else {"lockDuration": of_message}
        put(client, wait=["1"], jobs={"1": {**JOB, "opts": json.dumps(opts)}})

    take(broker)

    assert expected - 4_000 < client.pttl(f"emq:q:{job_id}:lock") <= expected
    client.pexpire(f"emq:q:{job_id}:lock", 100_000)
    broker.locks.renew()
    assert expected - 4_000 < client.pttl(f"emq:q:{job_id}:lock") <= expected


@pytest.mark.parametrize(
    ("of_message", "of_actor", "expected"), [(None, None, 0), (2, None, 2), (None, 3, 3), (2, 3, 2), (0, 3, 0)]
)
def test_a_priority_is_that_of_the_message_else_of_the_actor(client, broker, of_message, of_actor, expected):
    declare(broker, broker_priority=of_actor)

    job = add(broker, broker_priority=of_message)

    found = state(client)
    assert found[id_of(job)]["priority"] == str(expected)
    assert ("prioritized" in found, "wait" in found) == (expected > 0, expected == 0)


@pytest.mark.parametrize("is_paused", [False, True])
def test_the_first_one_goes_before_those_without_a_priority_and_those_before_the_others(client, broker, is_paused):
    if is_paused:
        broker.pause("q")
    for name, priority in [("2", 2), ("1", 1), ("a", None), ("b", 0), ("y", "first"), ("z", "first")]:
        add(broker, name, broker_priority=priority)
    if is_paused:
        broker.resume("q")

    _, messages = take(broker, 6)

    assert [message.args[0] for message in messages] == ["z", "y", "a", "b", "1", "2"]


def test_the_first_one_of_an_actor_is_what_bullmq_calls_lifo(client, broker):
    declare(broker, broker_priority="first")

    job = add(broker)
    later = add(broker, delay=60_000)

    found = state(client)
    assert (json.loads(found[id_of(job)]["opts"]), found[id_of(job)]["priority"]) == ({"lifo": True}, "0")
    assert list(found["delayed"]) == [id_of(later)]


def test_an_actor_sends_messages_with_options_of_their_own(client, broker):
    actor = declare(broker, max_stalled_count=0, lock_duration=9_000, broker_priority=3)

    job = actor.send_with_options(args=(), max_stalled_count=5)

    opts = json.loads(state(client)[id_of(job)]["opts"])
    assert opts == {"maxStalledCount": 5, "lockDuration": 9_000, "priority": 3}


def test_options_that_nobody_knows_are_refused_as_ever(broker):
    with pytest.raises(ValueError, match="max_stalls"):
        declare(broker, max_stalls=1)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_stalled_cuont", "max_stalled_count"),
        ("lock_durations", "lock_duration"),
        ("broker_priorty", "broker_priority"),
    ],
)
def test_an_option_of_a_message_that_was_mistyped_is_warned_of_once(client, broker, caplog, name, meant):
    for way in (lambda: add(broker, **{name: 0}), lambda: broker.enqueue_many([message(**{name: 0})])):
        way()
    assert lines(caplog, "WARNING") == [f"The option {name!r} of a message has no effect. Did you mean {meant}?"]
    assert len(state(client)["wait"]) == 2


def test_options_of_others_are_nobodys_business(broker, caplog):
    broker.actor_options.add("lock_durations")  # as middleware with this option does
    add(broker, lock_durations=1, priority=3, tenant="a", echomq_note="b")
    assert lines(caplog, "WARNING") == []
