"""Pausing and resuming a queue."""

from __future__ import annotations

import pytest

from ..support.job_data import add, id_of, take
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
