"""What flow parents are told when a child of theirs is acked or nacked."""

from __future__ import annotations

import json

import pytest

from ..support.job_data import JOB, ack, nack
from ..support.queue_data import NOW, WOKEN, as_data, event, put, state

pytestmark = pytest.mark.usefixtures("clock")

CHILD = "emq:q:child"


def put_family(client, *, flag: str | None = None, flag_in: str = "parent", others=(), parent=None, **parent_queue):
    """A child that waits in the queue `q`, and its parent in the queue `up`."""
    link = {"id": "p", "queueKey": "emq:up", **({flag: True} if flag and flag_in == "parent" else {})}
    child = {
        **JOB,
        "parentKey": "emq:up:p",
        "parent": json.dumps(link),
        "opts": json.dumps({flag: True} if flag and flag_in == "opts" else {}),
    }
    put(client, wait=["child"], jobs={"child": child})
    parent_queue = {"waiting_children": {"p": 5}, **parent_queue}
    put(client, "up", jobs={"p": parent or {}}, **{"p:dependencies": {CHILD, *others}}, **parent_queue)


def parent_state(client) -> dict:
    return state(client, "up")


RELEASED = {"wait": ["p"], "marker": WOKEN, "events": [event("waiting", "p", prev="waiting-children")]}


def test_an_acked_child_moves_to_processed_and_the_last_one_releases_its_parent(client, broker):
    put_family(client)

    ack(broker, 42)

    assert parent_state(client) == as_data(jobs={"p": {}}, **{"p:processed": {CHILD: "42"}}, **RELEASED)


def test_a_parent_waits_for_its_other_children(client, broker):
    put_family(client, others=["emq:other:1"])

    ack(broker, 42)

    assert parent_state(client) == as_data(
        jobs={"p": {}},
        waiting_children={"p": 5},
        **{"p:processed": {CHILD: "42"}, "p:dependencies": {"emq:other:1"}},
    )


@pytest.mark.parametrize(
    ("parent", "queue", "expected"),
    [
        ({}, {"meta": {"paused": "1"}}, {"paused": ["p"]}),
        ({"priority": "4"}, {}, {"prioritized": {"p": 4 * 2**32 + 1}, "marker": WOKEN, "pc": "1"}),
        ({"delay": "500"}, {}, {"delayed": {"p": (NOW + 500) * 4096}, "marker": {"1": NOW + 500}}),
        ({}, {"wait": ["y", "x"]}, {"wait": ["y", "x", "p"], "marker": WOKEN}),
    ],
    ids=["a paused queue", "a priority", "a delay", "others waiting"],
)
def test_a_parent_is_released_to_where_it_belongs_with(client, broker, parent, queue, expected):
    put_family(client, parent=parent, **queue)

    ack(broker, 42)

    found = parent_state(client)
    found.pop("events")
    assert found == as_data(jobs={"p": parent}, **{"p:processed": {CHILD: "42"}}, **{**queue, **expected})


def test_a_child_that_its_parent_does_not_wait_for_changes_nothing_there(client, broker):
    put_family(client)
    client.delete("emq:up:p:dependencies")
    before = parent_state(client)

    ack(broker, 42)

    assert parent_state(client) == before
    assert state(client)["completed"] == {"child": NOW}


@pytest.mark.parametrize("damage", [{"wait": "text"}, {"p:processed": "text"}], ids=["its queue", "its results"])
def test_a_parent_that_cannot_be_told_does_not_keep_its_child_from_completing(client, broker, damage):
    put_family(client, **damage)
    before = parent_state(client)

    ack(broker, 42)

    assert parent_state(client) == before
    assert state(client)["completed"] == {"child": NOW}


@pytest.mark.parametrize("flag_in", ["parent", "opts"])
@pytest.mark.parametrize(
    ("flag", "others", "expected"),
    [
        (
            "fpof",
            ["emq:other:1"],
            {
                "jobs": {"p": {"defa": f"child {CHILD} failed", "delay": "0"}},
                "p:unsuccessful": {CHILD: NOW},
                "p:dependencies": {"emq:other:1"},
                **RELEASED,
            },
        ),
        (
            "cpof",
            ["emq:other:1"],
            {"p:failed": {CHILD: "Boom: it broke"}, "p:dependencies": {"emq:other:1"}, **RELEASED},
        ),
        ("idof", [], {"p:failed": {CHILD: "Boom: it broke"}, **RELEASED}),
        (
            "idof",
            ["emq:other:1"],
            {
                "p:failed": {CHILD: "Boom: it broke"},
                "p:dependencies": {"emq:other:1"},
                "waiting_children": {"p": 5},
            },
        ),
        ("rdof", [], RELEASED),
        ("rdof", ["emq:other:1"], {"p:dependencies": {"emq:other:1"}, "waiting_children": {"p": 5}}),
    ],
    ids=["fpof", "cpof", "idof", "idof with others", "rdof", "rdof with others"],
)
def test_a_nacked_child_tells_its_parent_what_its_flag_says(client, broker, flag, others, expected, flag_in):
    put_family(client, flag=flag, flag_in=flag_in, others=others)

    nack(broker)

    assert parent_state(client) == as_data(**{"jobs": {"p": {}}, **expected})


def test_a_nacked_child_without_a_flag_leaves_its_parent_waiting(client, broker):
    put_family(client)
    before = parent_state(client)

    nack(broker)

    assert parent_state(client) == before
    assert state(client)["failed"] == {"child": NOW}
