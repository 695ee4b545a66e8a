"""How a flow parent that goes on joins its own queue, and how it is found."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import StalledChecker

from ..support.queue_data import NOW, as_data, event, put, state, was_failed

pytestmark = pytest.mark.usefixtures("clock")

REASON = "job stalled more than allowable limit"
CHILD = "emq:q:child"
MOVED = [event("waiting", "p", prev="waiting-children")]
FAILED = {"p:failed": {CHILD: REASON}}


def put_child(client, queue="flows", *, parent=None, parent_key="emq:flows:p", **structures):
    """A poisoned last child of a parent that goes on, whatever becomes of the child."""
    parent = json.dumps({"id": "p", "queueKey": "emq:flows"} if parent is None else parent)
    fields = {"stc": "1", "opts": '{"cpof": true}', "parent": parent, "parentKey": parent_key}
    child = {name: value for name, value in fields.items() if value}
    put(client, active=["child"], jobs={"child": child}, stalled={"child"})
    waits = {"p:dependencies": {CHILD}, "waiting-children": {"p": 5}}
    put(client, queue, **{"jobs": {"p": {}}, **waits, **structures})


def check(client, queue="flows") -> dict:
    assert StalledChecker(client).check("q").failed_ids == ("child",)
    return state(client, queue)


def test_a_parent_jumps_to_the_front_of_its_line(client):
    put_child(client, wait=["back", "front"])

    assert check(client)["wait"] == ["back", "front", "p"]


def test_a_parent_in_a_paused_queue_joins_those_that_are_paused(client):
    put_child(client, meta={"paused": "1"}, paused=["other"])

    assert check(client) == as_data(paused=["other", "p"], jobs={"p": {}}, meta={"paused": "1"}, events=MOVED, **FAILED)


def test_a_paused_queue_of_the_child_is_not_the_parents(client):
    put_child(client)
    put(client, meta={"paused": "1", "concurrency": "0"})

    assert check(client) == as_data(wait=["p"], jobs={"p": {}}, marker={"0": 0}, events=MOVED, **FAILED)


def test_a_parent_with_a_priority_keeps_it(client):
    put_child(client, jobs={"p": {"priority": "3"}}, pc="6")

    assert check(client) == as_data(
        prioritized={"p": 3 * 2**32 + 7},
        pc="7",
        jobs={"p": {"priority": "3"}},
        marker={"0": 0},
        events=MOVED,
        **FAILED,
    )


def test_a_parent_with_a_delay_is_delayed_first(client):
    put_child(client, jobs={"p": {"delay": "5000"}}, delayed={"sooner": (NOW + 1000) * 4096})

    assert check(client) == as_data(
        delayed={"sooner": (NOW + 1000) * 4096, "p": (NOW + 5000) * 4096},
        jobs={"p": {"delay": "5000"}},
        marker={"1": NOW + 1000},
        events=[event("delayed", "p", delay=str(NOW + 5000))],
        **FAILED,
    )


@pytest.mark.parametrize(("concurrency", "woken"), [("1", False), ("2", True)])
def test_a_parent_wakes_nobody_when_the_concurrency_of_its_queue_is_reached(client, concurrency, woken):
    put_child(client, active=["running"], meta={"concurrency": concurrency})

    assert ("marker" in check(client)) is woken


def test_a_parent_of_the_same_queue_is_told(client):
    put_child(client, "q", parent={"id": "p", "queueKey": "emq:q"}, parent_key="emq:q:p")

    after = check(client, "q")

    assert (after["wait"], after["p:failed"]) == (["p"], {CHILD: REASON})
    assert after["events"] == [*was_failed("child", REASON), *MOVED]


@pytest.mark.parametrize(
    ("parent", "parent_key"),
    [
        pytest.param({"id": "p", "queueKey": "emq:flows"}, "", id="without parentKey"),
        pytest.param({}, "emq:flows:p", id="parentKey only"),
        pytest.param({"id": None, "queueKey": "emq:other"}, "emq:flows:p", id="parent without id"),
        pytest.param({"id": "other", "queueKey": 3}, "emq:flows:p", id="queueKey of another type"),
    ],
)
def test_a_parent_is_found_by_its_key_or_by_its_description(client, parent, parent_key):
    put_child(client, parent=parent, parent_key=parent_key)

    assert check(client) == as_data(wait=["p"], jobs={"p": {}}, marker={"0": 0}, events=MOVED, **FAILED)


def test_a_parent_whose_id_is_a_number_is_found(client):
    put_child(
        client,
        parent={"id": 12, "queueKey": "emq:flows"},
        parent_key="",
        jobs={"12": {}},
        **{"12:dependencies": {CHILD}, "waiting-children": {"12": 5}},
    )

    assert check(client)["wait"] == ["12"]


@pytest.mark.parametrize("parent_key", ["", "no colon", "emq:gone:p"])
def test_a_parent_that_is_not_there_stops_nothing(client, parent_key):
    put_child(client, parent={}, parent_key=parent_key)
    before = state(client, "flows")

    assert check(client) == before
    assert client.keys("emq:gone:*") == []


@pytest.mark.parametrize("flag", ["fpof", "cpof", "idof", "rdof"])
def test_a_parent_without_a_hash_is_not_moved(client, flag):
    """It would be a ghost in its queue."""
    put_child(client, jobs={})
    client.hset(CHILD, "opts", json.dumps({flag: True}))

    assert not {"wait", "p"} & check(client).keys()


@pytest.mark.parametrize(
    "broken",
    ["p", "p:dependencies", "p:failed", "p:unsuccessful", "wait", "waiting-children", "prioritized", "events", "meta"],
)
def test_a_parent_with_a_key_of_another_type_is_not_told_and_that_is_reported(client, broken):
    put_child(client)
    client.delete(f"emq:flows:{broken}")
    client.set(f"emq:flows:{broken}", "broken")
    before = state(client, "flows")

    check = StalledChecker(client).check("q")

    assert check.failed_ids == ("child",)
    oddity = f"its parent was not told: emq:flows:{broken} is a string and should be a "
    assert [(job_id, text[: len(oddity)]) for job_id, text in check.oddities] == [("child", oddity)]
    assert state(client, "flows") == before
