"""Flow parents that run although their children do not let them complete: somebody retried them by hand."""

from __future__ import annotations

import json

import pytest

from ..support.brokers import lines
from ..support.job_data import JOB, ack, nack
from ..support.queue_data import NOW, put, state

pytestmark = pytest.mark.usefixtures("clock")

CHILD = "emq:down:c"
PENDING = {"p:dependencies": {CHILD}}
FAILED = {"p:unsuccessful": {CHILD: 5}}


@pytest.mark.parametrize(
    ("children", "reason"),
    [
        (PENDING, "Job p has pending dependencies"),
        (FAILED, "Cannot complete job p because it has at least one failed child"),
        ({**PENDING, **FAILED}, "Job p has pending dependencies"),
    ],
    ids=["pending", "failed", "both"],
)
def test_a_parent_whose_children_do_not_let_it_complete_fails_and_says_why(client, broker, children, reason, caplog):
    put(client, wait=["p"], jobs={"p": JOB}, **children)

    ack(broker, 42)

    found = state(client)
    assert found["failed"] == {"p": NOW}
    assert "completed" not in found
    assert found["p"]["failedReason"].startswith(reason)
    assert "returnvalue" not in found["p"]
    assert [said["event"] for said in found["events"]] == ["active", "failed", "retries-exhausted", "drained"]
    [line] = lines(caplog, "WARNING", "ERROR")
    assert reason in line


@pytest.mark.parametrize(
    "children",
    [{}, {"p:processed": {CHILD: "1"}}, {"p:failed": {CHILD: "broke"}}],
    ids=["none", "completed", "failed and ignored"],
)
def test_a_parent_whose_children_let_it_completes(client, broker, children):
    put(client, wait=["p"], jobs={"p": JOB}, **children)

    ack(broker)

    assert state(client)["completed"] == {"p": NOW}


@pytest.mark.parametrize("children", [PENDING, FAILED], ids=["pending", "failed"])
def test_a_parent_may_fail_whatever_its_children_did(client, broker, children):
    put(client, wait=["p"], jobs={"p": JOB}, **children)

    nack(broker)

    assert state(client)["p"]["failedReason"] == "Boom: it broke"


def test_a_parent_that_fails_so_is_kept_as_failed_ones_are(client, broker):
    put(client, wait=["p"], jobs={"p": {**JOB, "opts": '{"removeOnFail": true}'}}, **PENDING)

    ack(broker)

    assert not {"p", "failed", "p:dependencies"} & state(client).keys()


@pytest.mark.parametrize(
    "children", [{"p:unsuccessful": {CHILD: 5}}, {"p:failed": {CHILD: "broke"}}], ids=["fpof", "cpof or idof"]
)
@pytest.mark.parametrize("parent", [{"p": JOB}, {}], ids=["a parent", "a parent that is gone"])
def test_a_parent_waits_again_for_a_failed_child_that_is_retried(client, broker, children, parent):
    link = {"parentKey": "emq:q:p", "parent": json.dumps({"id": "p", "queueKey": "emq:q"})}
    put(client, "down", failed={"c": 5}, jobs={"c": {**JOB, **link}})
    put(client, jobs=parent, **children)

    assert broker.retry("down", "c") is True

    expected = {"p:dependencies": {CHILD}} if parent else {name: dict(value) for name, value in children.items()}
    found = {name: value for name, value in state(client).items() if name.startswith("p:")}
    assert found == expected


def test_a_retried_parent_completes_once_its_retried_child_has(client, broker):
    """As with BullMQ's own workers: first the child, then the parent."""
    link = {"parentKey": "emq:q:p", "parent": json.dumps({"id": "p", "queueKey": "emq:q", "fpof": True})}
    put(
        client,
        failed={"c": 5, "p": 6},
        jobs={"c": {**JOB, **link}, "p": JOB},
        **{"p:unsuccessful": {"emq:q:c": 5}},
    )

    broker.retry("q", "c")
    ack(broker, 7)
    broker.retry("q", "p")
    ack(broker)

    found = state(client)
    assert found["completed"].keys() == {"c", "p"}
    assert found["p:processed"] == {"emq:q:c": "7"}
