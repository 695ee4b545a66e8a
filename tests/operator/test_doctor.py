"""What the doctor finds, what it writes while it looks (nothing), and what its repairs leave."""

from __future__ import annotations

import pytest

from dramatiq_echomq import QueueNotFound
from dramatiq_echomq.inspection.doctor.census import STEP
from dramatiq_echomq.inspection.doctor.findings import MEANINGS, REPAIRS, Finding

from ..support.operator_data import put_busy_queue, repaired
from ..support.queue_data import META, NOW, WOKEN, as_data, dump, event, put, state

FINISHED = {"finishedOn": "5"}
pytestmark = pytest.mark.usefixtures("clock")


def test_nothing_is_wrong_with_a_busy_queue(client, doctor):
    put_busy_queue(client)
    put(client, repeat={"s": 5}, jobs={"repeat:s:5": {"rjk": "s"}}, **{"repeat:s": {"name": "x", "data": "{}"}})
    put(client, stalled={"runs"}, **{"waits:logs": ["x"], "de:d": "waits", "id": "4", "pc": "1"})
    client.zadd("emq:q:delayed", {"repeat:s:5": 5 * 4096})
    client.sadd("emq:q:parent:dependencies", "emq:q:child")
    before = dump(client)

    assert doctor.examine("q") == []

    assert dump(client) == before


@pytest.mark.parametrize("other", ["q:more", "q:more:still", "q:"])
def test_nothing_is_wrong_with_a_queue_for_the_jobs_of_another_that_begins_with_its_name(client, doctor, other):
    """Queues of BullMQ for Python may have colons in their names."""
    put(client, wait=["a", "gone"], jobs={"a": {}, "lost": {}}, meta=META)
    put(client, other, wait=["a"], active=["b"], jobs={"a": {}, "b": {}}, locks=["b"], meta=META)
    client.persist(f"emq:{other}:b:lock")
    before = state(client, other)

    assert [finding.job_ids for finding in repaired(doctor)] == [("gone",), ("lost",)]
    assert state(client, other) == before


#: By kind: a queue with one job in trouble, and the queue after the repair.
TROUBLES = {
    "no-job": [
        ({"active": ["a"], "stalled": {"a"}}, {}),
        ({"wait": ["a", "b", "a"], "jobs": {"b": {}}}, {"wait": ["b"], "jobs": {"b": {}}}),
        ({"completed": {"a": 1}}, {}),
    ],
    "nowhere": [
        ({"jobs": {"a": {}}}, {"jobs": {"a": {}}, "wait": ["a"], "marker": WOKEN, "events": [event("waiting", "a")]}),
        (
            {"jobs": {"a": {"priority": "2"}}},
            {
                "jobs": {"a": {"priority": "2"}},
                "prioritized": {"a": 2 * 2**32 + 1},
                "pc": "1",
                "marker": WOKEN,
                "events": [event("waiting", "a")],
            },
        ),
        ({"jobs": {"a": FINISHED}}, {"jobs": {"a": FINISHED}, "completed": {"a": 5}}),
        (
            {"jobs": {"a": {**FINISHED, "failedReason": "x"}}},
            {"jobs": {"a": {**FINISHED, "failedReason": "x"}}, "failed": {"a": 5}},
        ),
        (
            {"jobs": {"a": {}}, "a:dependencies": {"emq:x:1"}},
            {"jobs": {"a": {}}, "a:dependencies": {"emq:x:1"}, "waiting_children": {"a": NOW}},
        ),
    ],
    "twice": [
        ({"jobs": {"a": {}}, "active": ["a"], "wait": ["a"]}, {"jobs": {"a": {}}, "wait": ["a"]}),
        (
            {"jobs": {"a": {}}, "active": ["a"], "wait": ["a"], "locks": ["a"]},
            {"jobs": {"a": {}}, "active": ["a"], "locks": ["a"]},
        ),
        (
            {"jobs": {"a": FINISHED}, "active": ["a"], "completed": {"a": 5}, "stalled": {"a"}},
            {"jobs": {"a": FINISHED}, "completed": {"a": 5}},
        ),
        ({"jobs": {"a": {}}, "wait": ["a"], "failed": {"a": 5}}, {"jobs": {"a": {}}, "wait": ["a"]}),
        (
            {"jobs": {"a": {}, "b": {}}, "wait": ["a", "b", "a"]},
            {"jobs": {"a": {}, "b": {}}, "wait": ["b", "a"]},
        ),
        (
            {"jobs": {"a": {}}, "delayed": {"a": 4096}, "prioritized": {"a": 1}},
            {"jobs": {"a": {}}, "prioritized": {"a": 1}},
        ),
    ],
    "lock": [
        ({"jobs": {"a": {}}, "wait": ["a"], "a:lock": "x"}, {"jobs": {"a": {}}, "wait": ["a"]}),
        ({"a:lock": "x"}, {}),
    ],
    "mark": [
        ({"jobs": {"a": {}}, "wait": ["a"], "stalled": {"a"}}, {"jobs": {"a": {}}, "wait": ["a"]}),
        ({"stalled": {"a"}}, {}),
    ],
}


CASES = [(kind, *case) for kind, cases in TROUBLES.items() for case in cases]


@pytest.mark.parametrize(("kind", "before", "after"), CASES, ids=[f"{case[0]}-{at}" for at, case in enumerate(CASES)])
def test_what_is_wrong_with_a_job_is_found_and_repaired(client, doctor, kind, before, after):
    put(client, meta=META, **before)
    untouched = dump(client)

    assert doctor.examine("q") == [Finding(kind, job_ids=("a",))]
    assert dump(client) == untouched
    repaired(doctor)

    assert state(client) == as_data(meta=META, **after)


def test_the_throttle_gets_its_end_back(client, doctor):
    put(client, meta=META, stalled_check="somebody")

    assert repaired(doctor) == [Finding("throttle")]

    assert 0 < client.pttl("emq:q:stalled-check") <= 30_000


def test_jobs_left_in_paused_go_back_to_wait(client, doctor):
    put(client, meta=META, jobs={"a": {}, "b": {}}, paused=["a"], wait=["b"])

    assert repaired(doctor) == [Finding("paused-left", "1 of them")]

    assert sorted(state(client)["wait"]) == ["a", "b"]


def test_a_lock_that_ends_by_itself_is_only_told(client, doctor):
    put(client, meta=META, jobs={"a": {}}, wait=["a"], locks=["a"])

    (finding,) = doctor.examine("q")

    assert (finding.kind, finding.job_ids, finding.is_repairable) == ("idle-lock", ("a",), False)


STALLED = {"jobs": {"a": {}}, "active": ["a"]}


def test_that_nobody_brings_back_jobs_of_dead_workers_is_told(client, doctor):
    put(client, meta=META, **STALLED)

    (finding,) = doctor.examine("q")

    assert (finding.kind, finding.job_ids, finding.is_repairable) == ("unchecked", ("a",), False)


@pytest.mark.parametrize("what", ["locked", "checked", "checked meanwhile", "locked meanwhile"])
def test_jobs_that_run_and_those_that_are_seen_to_are_fine(client, doctor, what):
    put(client, meta=META, **STALLED, locks=["a"] if what == "locked" else [])

    def check(*_: object) -> None:
        client.set("emq:q:a:lock" if "locked" in what else "emq:q:stalled-check", "x", px=60_000)

    if what == "checked":
        check()
    assert doctor.examine("q", check if "meanwhile" in what else None) == []


def test_a_queue_of_another_type_or_protocol_is_told(client, doctor):
    put(client, meta=META, wait="text")
    assert [finding.kind for finding in doctor.examine("q")] == ["refused"]
    assert "emq:q:wait is a string" in doctor.examine("q")[0].detail

    client.flushdb()
    put(client, meta={"version": "echomq:2.0"})
    assert "only EchoMQ 1" in doctor.examine("q")[0].detail


def test_a_repair_looks_again(client, doctor):
    put(client, meta=META, jobs={"a": {}}, wait=["a"])
    before = state(client)

    for kind in TROUBLES:
        result = doctor.repair("q", Finding(kind, job_ids=("a",)))
        assert result.refused == {"a": "it has changed meanwhile"}

    assert state(client) == before


def test_any_number_of_jobs_is_looked_at_in_steps(client, doctor):
    names = [str(number) for number in range(2 * STEP + 1)]
    put(client, meta=META, jobs={name: {} for name in names[1:]}, wait=names)
    told = []

    findings = doctor.examine("q", lambda what, number: told.append((what, number)))

    assert findings == [Finding("no-job", job_ids=("0",))]
    assert ("wait", 2 * STEP) in told


def test_there_is_nothing_to_examine_of_a_queue_that_does_not_exist(client, doctor):
    with pytest.raises(QueueNotFound):
        doctor.examine("q")
    assert dump(client) == {}


def test_every_kind_says_what_it_means_and_what_to_do():
    assert set(REPAIRS) <= MEANINGS.keys()
    assert all(meaning and remedy for meaning, remedy in MEANINGS.values())
