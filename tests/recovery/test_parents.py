"""What the flow parent of a failed job is told."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import StalledChecker

from ..support.queue_data import NOW, WOKEN, as_data, event, put, state, was_failed

pytestmark = pytest.mark.usefixtures("clock")

REASON = "job stalled more than allowable limit"
CHILD = "emq:q:child"
DEFA = {"defa": f"child {CHILD} failed", "delay": "0"}
FLAGS = ["fpof", "cpof", "idof", "rdof"]
WAITS = {"waiting-children": {"p": 5}}
MOVED = [event("waiting", "p", prev="waiting-children")]


def put_child(client, *, flag=None, in_opts=False, fields=None, **parent):
    """A poisoned child in `q`. `in_opts` says where the flag is."""
    flags = {flag: True} if flag else {}
    described = {"id": "p", "queueKey": "emq:flows", **({} if in_opts else flags)}
    child = {"stc": "1", "parentKey": "emq:flows:p", "parent": json.dumps(described), "opts": "{}"}
    if in_opts:
        child["opts"] = json.dumps(flags)
    put(client, active=["child"], jobs={"child": {**child, **(fields or {})}}, stalled={"child"})
    put(client, "flows", **{"jobs": {"p": {}}, "p:dependencies": {CHILD, "emq:q:sibling"}, **parent})


def check(client) -> dict:
    """One check of the child's queue; what is then in the queue of the parent."""
    assert StalledChecker(client).check("q").failed_ids == ("child",)
    after = state(client)
    assert (after["failed"], after["events"]) == ({"child": NOW}, was_failed("child", REASON))
    return state(client, "flows")


@pytest.mark.parametrize("in_opts", [False, True], ids=["parent", "opts"])
def test_fpof_fails_a_waiting_parent_at_once(client, in_opts):
    put_child(client, flag="fpof", in_opts=in_opts, **WAITS)

    assert check(client) == as_data(
        wait=["p"],
        jobs={"p": DEFA},
        marker=WOKEN,
        events=MOVED,
        **{"p:dependencies": {"emq:q:sibling"}, "p:unsuccessful": {CHILD: NOW}},
    )


def test_fpof_fails_a_delayed_parent_at_once(client):
    put_child(client, flag="fpof", jobs={"p": {"delay": "60000"}}, delayed={"p": (NOW + 60_000) * 4096})

    assert check(client) == as_data(
        wait=["p"],
        jobs={"p": DEFA},
        marker=WOKEN,
        events=MOVED,
        **{"p:dependencies": {"emq:q:sibling"}, "p:unsuccessful": {CHILD: NOW}},
    )


@pytest.mark.parametrize("place", [{"active": ["p"]}, {"wait": ["p"]}, {"failed": {"p": 4}}], ids=str)
def test_fpof_moves_no_parent_that_waits_for_nothing(client, place):
    put_child(client, flag="fpof", **place)

    assert check(client) == as_data(
        jobs={"p": {}}, **place, **{"p:dependencies": {"emq:q:sibling"}, "p:unsuccessful": {CHILD: NOW}}
    )


@pytest.mark.parametrize("in_opts", [False, True], ids=["parent", "opts"])
def test_cpof_lets_the_parent_go_on_at_once(client, in_opts):
    put_child(client, flag="cpof", in_opts=in_opts, **WAITS)

    assert check(client) == as_data(
        wait=["p"],
        jobs={"p": {}},
        marker=WOKEN,
        events=MOVED,
        **{"p:dependencies": {"emq:q:sibling"}, "p:failed": {CHILD: REASON}},
    )


@pytest.mark.parametrize("in_opts", [False, True], ids=["parent", "opts"])
@pytest.mark.parametrize(("flag", "told"), [("idof", {"p:failed": {CHILD: REASON}}), ("rdof", {})])
def test_idof_and_rdof_let_the_parent_wait_for_its_other_children(client, flag, told, in_opts):
    put_child(client, flag=flag, in_opts=in_opts, **WAITS)

    assert check(client) == as_data(jobs={"p": {}}, **WAITS, **told, **{"p:dependencies": {"emq:q:sibling"}})


@pytest.mark.parametrize(("flag", "told"), [("idof", {"p:failed": {CHILD: REASON}}), ("rdof", {})])
def test_idof_and_rdof_let_the_parent_go_on_after_its_last_child(client, flag, told):
    put_child(client, flag=flag, **WAITS, **{"p:dependencies": {CHILD}})

    assert check(client) == as_data(wait=["p"], jobs={"p": {}}, marker=WOKEN, events=MOVED, **told)


@pytest.mark.parametrize("fields", [{}, {"opts": '{"fpof": false}'}, {"opts": '{"cpof": null, "attempts": 9}'}])
def test_without_a_flag_the_parent_keeps_waiting(client, fields):
    put_child(client, fields=fields, **WAITS)

    assert check(client) == as_data(jobs={"p": {}}, **WAITS, **{"p:dependencies": {CHILD, "emq:q:sibling"}})


def test_a_flag_in_parent_goes_before_one_in_opts(client):
    put_child(client, flag="rdof", fields={"opts": '{"fpof": true}'}, **WAITS)

    assert check(client) == as_data(jobs={"p": {}}, **WAITS, **{"p:dependencies": {"emq:q:sibling"}})


def test_the_first_flag_of_several_is_the_one(client):
    put_child(client, fields={"opts": '{"rdof": true, "cpof": true, "idof": true}'}, **WAITS)

    assert check(client)["wait"] == ["p"]


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("dependencies", [{"emq:q:sibling"}, {"emq:q:child2"}], ids=str)
def test_a_parent_that_does_not_depend_on_the_child_is_left_alone(client, flag, dependencies):
    put_child(client, flag=flag, **WAITS, **{"p:dependencies": dependencies})

    assert check(client) == as_data(jobs={"p": {}}, **WAITS, **{"p:dependencies": dependencies})


@pytest.mark.parametrize("flag", FLAGS)
def test_a_child_that_comes_back_tells_its_parent_nothing(client, flag):
    put_child(client, flag=flag, fields={"stc": "0"}, **WAITS)

    StalledChecker(client).check("q")

    assert state(client, "flows") == as_data(jobs={"p": {}}, **WAITS, **{"p:dependencies": {CHILD, "emq:q:sibling"}})


def test_a_parent_is_told_of_a_child_that_is_removed(client):
    put_child(client, flag="cpof", fields={"opts": '{"removeOnFail": true}'}, **WAITS)

    StalledChecker(client).check("q")

    assert state(client, "flows")["p:failed"] == {CHILD: REASON}
    assert state(client) == as_data(events=was_failed("child", REASON))
