"""What giving messages back leaves in Redis: as if they had never been taken."""

from __future__ import annotations

import pytest
import redis
from dramatiq import MessageProxy
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import StalledChecker

from ..support.job_data import JOB, add, id_of, message, take
from ..support.queue_data import NOW, WOKEN, as_data, event, put, state

pytestmark = pytest.mark.usefixtures("clock")

UNTOUCHED = {**JOB, "ats": "0"}


def returned(*job_ids: str) -> list[dict]:
    return [event("waiting", job_id, prev="active") for job_id in job_ids]


def put_waiting(client, *job_ids: str, **more) -> None:
    """Jobs that wait, the first of them to be taken first."""
    put(client, wait=[*reversed(job_ids)], jobs=dict.fromkeys(job_ids, JOB), **more)


def test_messages_go_back_to_where_they_are_taken_next_in_the_old_order(client, broker):
    put_waiting(client, "a", "b", "c", "d")
    consumer, messages = take(broker, 3)
    put(client, stalled={"a"})
    client.delete("emq:q:events", "emq:q:marker")

    consumer.requeue(messages)

    assert state(client) == as_data(
        wait=["d", "c", "b", "a"],
        jobs={**dict.fromkeys("abc", UNTOUCHED), "d": JOB},
        marker=WOKEN,
        events=returned("c", "b", "a"),
    )


@pytest.mark.parametrize("order", [(2, 0, 1), (2, 1, 0)])
def test_the_order_in_which_they_are_given_back_does_not_matter(client, broker, order):
    put_waiting(client, "a", "b", "c")
    consumer, messages = take(broker, 3)

    consumer.requeue(messages[at] for at in order)

    assert state(client)["wait"] == ["c", "b", "a"]


def test_giving_back_does_not_pass_by_all_the_jobs_of_dead_workers(client, broker):
    put_waiting(client, "a", active=[f"dead-{number}" for number in range(50_000)])
    taken = []
    for _ in range(5):
        consumer, messages = take(broker)
        client.config_resetstat()
        consumer.requeue(messages)
        taken.append(client.info("commandstats")["cmdstat_lrem"]["usec"])

    assert min(taken) < 100


def test_messages_in_memory_go_back_behind_those_that_were_handed_out(client, broker):
    put_waiting(client, "a", "b", "c", "d")
    consumer = broker.consume("q", prefetch=3, timeout=1)
    first = next(consumer)

    consumer.requeue([first])

    found = state(client)
    assert (found["wait"], found["locks"]) == (["d", "c", "b", "a"], set())


def test_closing_a_consumer_gives_back_what_is_in_memory(client, broker):
    put_waiting(client, "a", "b", "c")
    consumer = broker.consume("q", prefetch=3, timeout=1)
    assert id_of(next(consumer)) == "a"

    consumer.close()

    found = state(client)
    assert (found["active"], found["wait"], found["locks"]) == (["a"], ["c", "b"], {"a"})


def test_a_consumer_that_is_closed_twice_gives_back_once(client, broker):
    put_waiting(client, "a", "b")
    consumer = broker.consume("q", prefetch=2, timeout=1)
    next(consumer)
    consumer.close()
    before = state(client)

    consumer.close()

    assert state(client) == before


def test_what_is_given_back_is_taken_again_as_the_first_time(client, broker):
    put_waiting(client, "a")
    consumer, messages = take(broker)
    once = state(client)

    consumer.requeue(messages)
    take(broker)

    again = state(client)
    assert {**again, "events": None, "marker": None} == {**once, "events": None, "marker": None}


def test_earlier_fetches_still_count(client, broker):
    put(client, wait=["a"], jobs={"a": {**JOB, "ats": "2", "stc": "1", "atm": "1"}})
    consumer, messages = take(broker)

    consumer.requeue(messages)

    assert state(client)["a"] == as_data(jobs={"a": {**JOB, "ats": "2", "stc": "1", "atm": "1"}})["a"]


def test_a_check_right_after_finds_nothing(client, broker):
    put_waiting(client, "a", "b")
    consumer, messages = take(broker, 2)
    consumer.requeue(messages)
    before = state(client)

    assert StalledChecker(client).check("q").marked == 0

    assert state(client) == before


def test_jobs_of_a_queue_that_was_paused_go_back_to_paused_and_wake_nobody(client, broker):
    put_waiting(client, "a", "b", "c")
    consumer, messages = take(broker, 2)
    broker.pause("q")
    client.delete("emq:q:events")

    consumer.requeue(messages)

    assert state(client) == as_data(
        paused=["c", "b", "a"],
        jobs={"a": UNTOUCHED, "b": UNTOUCHED, "c": JOB},
        meta={"paused": "1"},
        events=returned("b", "a"),
    )


def test_prioritized_jobs_go_before_the_others_of_their_priority(client, broker):
    for job_id, score in {"high": 2**32 + 1, "a": 2 * 2**32 + 2, "b": 2 * 2**32 + 3, "c": 2 * 2**32 + 4}.items():
        priority = str(score // 2**32)
        put(client, prioritized={job_id: score}, jobs={job_id: {**JOB, "priority": priority}})
    consumer, messages = take(broker, 3)

    consumer.requeue(messages)

    assert client.zrange("emq:q:prioritized", 0, -1) == [b"high", b"a", b"b", b"c"]
    assert all(int(score) // 2**32 in (1, 2) for score in state(client)["prioritized"].values())


def test_prioritized_jobs_keep_their_order_when_no_other_is_left(client, broker):
    """The counter that scores are made of starts anew when a fetch finds none."""
    job_ids = ["c", "b", "a"]
    for at, job_id in enumerate(job_ids, start=1):
        put(client, prioritized={job_id: 2**32 + at}, jobs={job_id: {**JOB, "priority": "1"}}, pc="3")
    consumer, messages = take(broker, 4)
    put(client, prioritized={"later": 2**32 + 1}, jobs={"later": JOB}, pc="1")

    consumer.requeue(messages)

    assert client.zrange("emq:q:prioritized", 0, -1) == [b"c", b"b", b"a", b"later"]


def test_delayed_jobs_that_were_due_go_back_to_wait(client, broker):
    job = add(broker, delay=1)
    put(client, delayed={id_of(job): NOW * 4096})
    consumer, messages = take(broker)

    consumer.requeue(messages)

    found = state(client)
    assert (found["wait"], found[id_of(job)]["delay"]) == ([id_of(job)], "0")


def test_more_jobs_go_back_than_lua_unpacks(client, broker):
    job_ids = [str(at) for at in range(9_000)]
    put(client, wait=[*reversed(job_ids)])
    with client.pipeline() as pipeline:
        for job_id in job_ids:
            pipeline.hset(f"emq:q:{job_id}", mapping=JOB)
        pipeline.execute()
    consumer = broker.consume("q", prefetch=9_000, timeout=1)
    first = next(consumer)

    consumer.requeue([first])

    assert client.lrange("emq:q:wait", 0, -1) == [job_id.encode() for job_id in reversed(job_ids)]
    assert client.llen("emq:q:active") == 0


def test_a_message_of_another_broker_is_ignored(client, broker):
    consumer = broker.consume("q", timeout=1)

    consumer.requeue([MessageProxy(message())])
    consumer.ack(MessageProxy(message()))

    assert state(client) == as_data()


def away(*_, **__):
    raise redis.ConnectionError("Redis is away")


def test_closing_does_not_raise_while_redis_is_away_and_the_next_consumer_goes_on(client, broker, monkeypatch):
    put_waiting(client, "a", "b", "c")
    consumer = broker.consume("q", prefetch=3, timeout=1)
    next(consumer)

    with monkeypatch.context() as patch:
        patch.setattr(broker.connections.commands, "execute_command", away)
        with pytest.raises(ConnectionClosed):
            consumer.requeue([])
        consumer.close()
        broker.close()

    _, messages = take(broker, 3)
    assert [id_of(message) for message in messages] == ["b", "c"]


def test_messages_that_were_given_back_although_the_reply_was_lost_are_not_run_here(client, broker, monkeypatch):
    """They may run elsewhere by now."""
    put_waiting(client, "a", "b", "c")
    consumer = broker.consume("q", prefetch=3, timeout=1)
    next(consumer)

    def lose_reply(*args, **options):
        type(client).execute_command(client, *args, **options)
        raise redis.ConnectionError("the reply was lost")

    with monkeypatch.context() as patch:
        patch.setattr(broker.connections.commands, "execute_command", lose_reply)
        consumer.close()
    client.lmove("emq:q:wait", "emq:q:active", "RIGHT", "LEFT")
    client.set("emq:q:b:lock", "of another worker")
    client.hincrby("emq:q:b", "ats", 1)

    _, messages = take(broker, 3)

    assert [id_of(message) for message in messages] == ["c"]
    assert state(client)["active"].count("b") == 1
