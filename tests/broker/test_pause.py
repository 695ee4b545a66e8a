"""Pausing and resuming a queue."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from ..support.job_data import JOB, add, id_of, take
from ..support.queue_data import NOW, WOKEN, as_data, put, state


@pytest.mark.parametrize(
    ("wait", "paused"), [(["b", "a"], []), ([], ["b", "a"]), (["b"], ["a"])], ids=["wait", "paused", "both"]
)
def test_pause_moves_what_waits_to_paused(client, broker, wait, paused):
    put(client, **({"wait": wait} if wait else {}), **({"paused": paused} if paused else {}), marker=WOKEN)

    broker.pause("q")

    both = ["a", "b"] if wait and paused else ["b", "a"]
    assert state(client) == as_data(paused=both, meta={"paused": "1"}, events=[{"event": "paused"}])


@pytest.mark.parametrize(
    ("wait", "paused", "merged"),
    [
        (["b", "a"], [], ["b", "a"]),
        ([], ["b", "a"], ["b", "a"]),
        (["d", "c"], ["b", "a"], ["d", "c", "b", "a"]),
    ],
    ids=["wait", "paused", "both"],
)
def test_resume_makes_one_list_of_both_and_wakes_a_worker(client, broker, wait, paused, merged):
    """Those in paused were there before."""
    put(client, **({"wait": wait} if wait else {}), **({"paused": paused} if paused else {}), meta={"paused": "1"})

    broker.resume("q")

    assert state(client) == as_data(wait=merged, marker=WOKEN, events=[{"event": "resumed"}])


def test_resume_makes_one_list_of_two_long_ones(client, broker):
    """As many ids as Lua cannot hold in one call."""
    wait, paused = ([f"{which}{number}" for number in range(9_500)] for which in "wp")
    put(client, wait=wait, paused=paused, meta={"paused": "1"})

    broker.resume("q")

    assert state(client)["wait"] == wait + paused


def test_resume_says_when_the_next_delayed_job_is_due(client, broker):
    put(client, delayed={"d": NOW * 4096 + 7}, meta={"paused": "1"})

    broker.resume("q")

    assert state(client)["marker"] == {"1": NOW}


def test_a_paused_queue_gives_nothing_until_it_is_resumed(client, broker):
    first, second = add(broker), add(broker)
    broker.pause("q")
    third = add(broker)
    assert take(broker, 3)[1] == []

    broker.resume("q")

    assert [id_of(message) for message in take(broker, 3)[1]] == [id_of(first), id_of(second), id_of(third)]


def is_given_back(client, broker, consumer, held):
    consumer.requeue([held])
    return id_of(held)


def is_retried(client, broker, consumer, held):
    put(client, failed={"a": 5}, jobs={"a": JOB})
    assert broker.retry("q", "a")
    return "a"


def is_recovered(client, broker, consumer, held):
    put(client, active=["a"], stalled={"a"}, jobs={"a": JOB})
    assert StalledChecker(client).check("q").recovered == 1
    return "a"


def is_due(client, broker, consumer, held):
    put(client, delayed={"a": 4096}, jobs={"a": JOB})
    assert take(broker, 2)[1] == []
    return "a"


def was_waiting_for_its_child(client, broker, consumer, held):
    put(client, waiting_children={"a": 5}, jobs={"a": JOB}, **{"a:dependencies": {f"emq:q:{id_of(held)}"}})
    client.hset(f"emq:q:{id_of(held)}", "parentKey", "emq:q:a")
    consumer.ack(held)
    return "a"


COMES = [
    lambda client, broker, consumer, held: id_of(add(broker)),
    is_given_back,
    is_retried,
    is_recovered,
    is_due,
    was_waiting_for_its_child,
]


@pytest.mark.parametrize("comes", COMES, ids=["is_added", *(comes.__name__ for comes in COMES[1:])])
@pytest.mark.parametrize("left", [["w"], []], ids=["some", "none"])
def test_a_job_that_comes_to_a_paused_queue_joins_those_that_bullmq_6_has_left_in_wait(client, broker, comes, left):
    put(client, wait=[*left, "held"], jobs={"w": JOB, "held": JOB})
    consumer, [held] = take(broker)
    put(client, meta={"paused": "1"})
    client.delete("emq:q:marker")

    job_id = comes(client, broker, consumer, held)

    found = state(client)
    lists = {name: sorted(found[name]) for name in ("wait", "paused") if name in found}
    assert lists == {"wait" if left else "paused": sorted([*left, job_id])}
    assert "marker" not in found
