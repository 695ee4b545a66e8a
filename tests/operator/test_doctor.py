"""What the doctor finds, what it writes while it looks (nothing), and what its repairs leave."""

from __future__ import annotations

import threading

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dramatiq_echomq import QueueNotFound
from dramatiq_echomq.inspection.doctor.census import STEP
from dramatiq_echomq.inspection.doctor.doctor import QueueDoctor
from dramatiq_echomq.inspection.doctor.findings import MEANINGS, REPAIRS, Finding

from ..support.operator_data import put_busy_queue
from ..support.queue_data import NOW, as_data, dump, event, put, state

META = {"version": "echomq:1"}
WOKEN = {"0": 0}
FINISHED = {"finishedOn": "5"}

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def doctor(client, monkeypatch) -> QueueDoctor:
    """A doctor for whom nothing is wrong with the server, whose clock the tests stop."""
    monkeypatch.setattr("dramatiq_echomq.inspection.doctor.doctor.examine_server", lambda _: [])
    return QueueDoctor(client)


def repaired(doctor) -> list[Finding]:
    """Look, repair, and return what was found; a second look finds nothing."""
    findings = doctor.examine("q")
    for finding in findings:
        doctor.repair("q", finding)
    assert [finding for finding in doctor.examine("q") if finding.is_repairable] == []
    return findings


def test_nothing_is_wrong_with_a_busy_queue(client, doctor):
    put_busy_queue(client)
    put(client, repeat={"s": 5}, jobs={"repeat:s:5": {"rjk": "s"}}, **{"repeat:s": {"name": "x", "data": "{}"}})
    put(client, stalled={"runs"}, **{"waits:logs": ["x"], "de:d": "waits", "id": "4", "pc": "1"})
    client.zadd("emq:q:delayed", {"repeat:s:5": 5 * 4096})
    client.sadd("emq:q:parent:dependencies", "emq:q:child")
    before = dump(client)

    assert doctor.examine("q") == []

    assert dump(client) == before


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


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, [("eviction", "maxmemory-policy is allkeys-lru")]),
        ({"redis_version": "6.0.16"}, [("old-server", "it is Redis 6.0.16")]),
        ({"redis_version": "6.2.0", "maxmemory_policy": "noeviction"}, []),
        ({"redis_version": "7.2.4", "valkey_version": "7.0.0"}, [("old-server", "it is Valkey 7.0.0")]),
        ({"redis_version": "odd"}, []),
    ],
)
def test_a_server_that_does_harm_is_told(client, monkeypatch, info, expected):
    put(client, meta=META)
    monkeypatch.setattr(redis.Redis, "info", lambda self: info)
    monkeypatch.setattr(redis.Redis, "time", lambda self: (NOW // 1000, 0))

    assert [(finding.kind, finding.detail) for finding in QueueDoctor(client).examine("q")] == expected


@pytest.mark.parametrize(("seconds", "word"), [(9, "ahead of"), (-9, "behind"), (1, "")])
def test_clocks_that_differ_are_told(client, monkeypatch, seconds, word):
    put(client, meta=META)
    monkeypatch.setattr(redis.Redis, "time", lambda self: (NOW // 1000 + seconds, 0))

    findings = QueueDoctor(client).examine("q")

    expected = [f"the clock of Redis is 9.0 s {word} the one here"] if word else []
    assert [finding.detail for finding in findings] == expected


def test_every_kind_says_what_it_means_and_what_to_do():
    assert set(REPAIRS) <= MEANINGS.keys()
    assert all(meaning and remedy for meaning, remedy in MEANINGS.values())


PLACES = st.sets(st.sampled_from(["wait", "paused", "active", "delayed", "prioritized", "completed", "failed"]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jobs=st.dictionaries(
        st.sampled_from("abcd"),
        st.tuples(PLACES, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
        min_size=1,
    )
)
def test_after_a_repair_every_job_has_one_place_and_none_is_lost(client, doctor, jobs):
    client.flushdb()
    put(client, meta=META)
    for job_id, (places, there, locked, finished, marked) in jobs.items():
        if there:
            put(client, jobs={job_id: FINISHED if finished else {}})
        for place in places:
            put(client, **{place: [job_id] if place in ("wait", "paused", "active") else {job_id: 1}})
        if locked and "active" in places:
            put(client, locks=[job_id])
        if marked:
            put(client, stalled={job_id})

    repaired(doctor)

    after = state(client)
    for job_id, (_, there, locked, _, _) in jobs.items():
        found = [place for place, ids in after.items() if place not in ("locks", "stalled") and job_id in ids]
        assert (job_id in after) == there
        if there:
            assert len(found) == 1
        elif not locked:
            assert found == []


def test_a_look_is_right_while_jobs_move(client, doctor):
    names = [str(number) for number in range(300)]
    put(client, meta=META, jobs={name: {} for name in names}, wait=names)
    stop = threading.Event()
    mover = redis.Redis(connection_pool=client.connection_pool)

    def move() -> None:
        while not stop.is_set():
            mover.rpoplpush("emq:q:wait", "emq:q:active")
            mover.rpoplpush("emq:q:active", "emq:q:wait")

    thread = threading.Thread(target=move)
    thread.start()
    try:
        for _ in range(5):
            assert doctor.examine("q") == []
    finally:
        stop.set()
        thread.join()
