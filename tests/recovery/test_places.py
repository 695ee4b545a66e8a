"""A queue with a global concurrency: jobs that leave `active` free places, and a worker must know."""

from __future__ import annotations

import pytest

from dramatiq_echomq import QueueInspector, StalledChecker
from dramatiq_echomq.inspection.doctor.doctor import QueueDoctor
from dramatiq_echomq.inspection.doctor.findings import Finding

from ..support.queue_data import WOKEN, put, state

pytestmark = pytest.mark.usefixtures("clock")

POISON = {"stc": "1"}
DONE = {"finishedOn": "5"}


@pytest.mark.parametrize("waiting", [{"wait": ["w"]}, {"prioritized": {"w": 2**33}}], ids=["wait", "prioritized"])
@pytest.mark.parametrize("jobs", [{"a": POISON, "w": {}}, {"w": {}}], ids=["fails", "drops"])
def test_a_check_that_frees_a_place_wakes_a_worker(client, jobs, waiting):
    put(client, active=["a"], jobs=jobs, stalled={"a"}, meta={"concurrency": "1"}, **waiting)

    StalledChecker(client).check("q")

    assert state(client)["marker"] == WOKEN


@pytest.mark.parametrize(
    ("act", "queue"),
    [
        (lambda client: QueueInspector(client).remove("q", ["a"]), {"jobs": {"a": {}, "w": {}}}),
        (lambda client: repair(client, "no-job"), {}),
        (lambda client: repair(client, "twice"), {"completed": {"a": 1}, "jobs": {"a": DONE, "w": {}}}),
    ],
    ids=["removes", "repairs an id without a job", "repairs one that is twice there"],
)
@pytest.mark.parametrize("is_free", [True, False])
def test_an_operator_who_frees_a_place_wakes_a_worker(client, act, queue, is_free):
    limit = "1" if is_free else "0"
    put(client, **{"jobs": {"w": {}}, **queue}, active=["a"], wait=["w"], meta={"concurrency": limit})

    act(client)

    assert state(client).get("marker") == (WOKEN if is_free else None)


def repair(client, kind: str) -> None:
    QueueDoctor(client).repair("q", Finding(kind, job_ids=("a",)))


@pytest.mark.parametrize(
    "queue",
    [
        {"meta": {"concurrency": "1"}},
        {"meta": {"concurrency": "1", "paused": "1"}, "paused": ["w"], "wait": ["w2"]},
        {"meta": {"concurrency": "1"}, "wait": ["w"], "active": ["b"], "locks": ["b"]},
        {"wait": ["w"]},
    ],
    ids=["nothing waits", "a paused queue", "no place is free", "no limit"],
)
def test_it_wakes_none_for_nothing(client, queue):
    put(client, active=["a"], jobs={"a": POISON, "b": {}}, stalled={"a"})
    put(client, **queue)

    StalledChecker(client).check("q")

    assert "marker" not in state(client)
