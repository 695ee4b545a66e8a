"""Odd data: it is read as far as it makes sense, reported, and stops nobody else's recovery."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledCheck, StalledChecker

from ..support.queue_data import BACK, WOKEN, as_data, came_back, put, state

NO_OBJECTS = ["no json", "{", '"text"', "12", "true", "null", "[1]", "[null]", "\x00", "[" * 5000]


@pytest.mark.parametrize("odd", NO_OBJECTS, ids=lambda text: repr(text[:9]))
@pytest.mark.parametrize(
    ("field", "oddity"),
    [
        ("opts", "its opts are no JSON object and count as empty"),
        ("parent", "its parent is no JSON object and counts as empty"),
    ],
)
def test_a_field_that_is_no_json_object_counts_as_empty_and_is_reported(client, field, oddity, odd):
    jobs = {"before": {}, "odd": {field: odd}, "after": {}}
    put(client, active=["after", "odd", "before"], jobs=jobs, stalled=set(jobs))

    check = StalledChecker(client).check("q")

    assert (check.recovered_ids, check.oddities) == (("before", "odd", "after"), (("odd", oddity),))
    assert state(client) == as_data(
        wait=["after", "odd", "before"],
        jobs={"before": BACK, "odd": {field: odd, **BACK}, "after": BACK},
        marker=WOKEN,
        events=[*came_back("before"), *came_back("odd"), *came_back("after")],
    )


@pytest.mark.parametrize("empty", ["", "{}", "[]", " {} "])
@pytest.mark.parametrize("field", ["opts", "parent"])
def test_an_empty_field_is_not_odd(client, field, empty):
    put(client, active=["a"], jobs={"a": {field: empty}}, stalled={"a"})

    assert StalledChecker(client).check("q") == StalledCheck("q", recovered=1, recovered_ids=("a",))


def test_a_job_with_odd_fields_can_be_failed(client):
    put(client, active=["a"], jobs={"a": {"stc": "1", "opts": "no json", "parent": "[1]"}}, stalled={"a"})

    assert StalledChecker(client).check("q").failed_ids == ("a",)


@pytest.mark.parametrize("odd", ["many", "", "1.5", "1e3", " 1", "nan", "inf", "0x10"])
def test_a_counter_that_is_no_number_counts_as_zero(client, odd):
    put(client, active=["a"], jobs={"a": {"stc": odd, "atm": odd, "priority": "many"}}, stalled={"a"})

    assert StalledChecker(client).check("q").recovered_ids == ("a",)

    assert state(client)["a"] == as_data(jobs={"a": {**BACK, "priority": "many"}})["a"]


def test_a_counter_beyond_all_numbers_counts_as_the_largest(client):
    put(client, active=["b", "a"], jobs={"a": {"stc": "9" * 400}, "b": {"stc": "-" + "9" * 400}}, stalled={"a", "b"})
    checker = StalledChecker(client)

    assert [job.stalls for job in checker.inspect("q")] == [2**53, -(2**53)]
    check = checker.check("q")

    assert (check.failed_ids, check.recovered_ids) == (("a",), ("b",))
    assert state(client)["a"]["stc"] == str(2**53)


def test_a_job_without_any_of_the_usual_fields_comes_back(client):
    client.hset("emq:q:a", "unknown", "field")
    put(client, active=["a"], stalled={"a"})

    StalledChecker(client).check("q")

    assert state(client)["a"] == {"unknown": "field", **BACK}


@pytest.mark.parametrize("kind", ["string", "list", "set", "zset", "stream"])
def test_a_job_that_is_no_hash_stays_in_active_and_is_reported(client, kind):
    """Nobody can say what it was, so it is neither dropped nor queued."""
    values = {"string": "x", "list": ["x"], "set": {"x"}, "zset": {"x": 1}}
    if kind == "stream":
        client.xadd("emq:q:odd", {"x": "1"})
    else:
        put(client, odd=values[kind])
    odd = state(client)["odd"]
    put(client, active=["after", "odd", "before"], jobs={"before": {}, "after": {}}, stalled={"before", "odd", "after"})

    check = StalledChecker(client).check("q")

    assert (check.recovered_ids, check.dropped) == (("before", "after"), 0)
    assert check.oddities == (("odd", "emq:q:odd is no hash; it stays in active"),)
    after = state(client)
    assert (after["active"], after["odd"], after["wait"]) == (["odd"], odd, ["after", "before"])


IDS = [
    pytest.param(b"two\nlines\r\n", id="newlines"),
    pytest.param(b"a:b:c", id="colons"),
    pytest.param(b"\xff\xfe\x00\x80", id="no UTF-8"),
    pytest.param("größe-日本".encode(), id="UTF-8"),
    pytest.param(b"x" * 10_000, id="10,000 characters"),
    pytest.param(b" ", id="blank"),
    pytest.param(b"-1", id="negative"),
    pytest.param(b"*?[{%s}", id="patterns"),
    pytest.param(b"0", id="zero"),
    pytest.param(b"a:locks", id="nearly a lock"),
]


@pytest.mark.parametrize("batch_size", [1, 1000])
@pytest.mark.parametrize("job_id", IDS)
def test_an_id_is_opaque(client, job_id, batch_size):
    put(client, active=["next", job_id], jobs={job_id: {}, "next": {}}, locks=["next"])
    checker = StalledChecker(client, batch_size=batch_size)

    assert checker.job_stalled("q", job_id)
    assert checker.check("q") == StalledCheck("q", marked=1)
    assert [job.verdict for job in checker.inspect("q")] == ["requeue", "healthy"]
    check = checker.check("q")

    assert [text.encode("utf-8", "surrogateescape") for text in check.recovered_ids] == [job_id]
    assert state(client) == as_data(
        active=["next"],
        wait=[job_id],
        locks=["next"],
        jobs={job_id: BACK, "next": {}},
        marker=WOKEN,
        events=came_back(job_id),
    )
    assert not checker.job_stalled("q", check.recovered_ids[0])


@pytest.mark.parametrize("job_id", IDS)
def test_a_job_is_failed_whatever_its_id(client, job_id):
    put(client, active=[job_id], jobs={job_id: {"stc": "1", "opts": '{"rof": true}'}}, stalled={job_id})

    check = StalledChecker(client).check("q")

    assert [text.encode("utf-8", "surrogateescape") for text in check.failed_ids] == [job_id]
    assert list(state(client)) == ["locks", "events"]


@pytest.mark.parametrize("job_id", ["", "wait", "active", "meta", "stalled", "events", "repeat", "pc", "completed"])
@pytest.mark.parametrize("marked", [False, True])
def test_an_id_that_names_a_key_of_the_queue_is_left_alone(client, job_id, marked):
    """A hash under such a key is no job: writing to it as if it were one would break the queue."""
    put(client, active=["a", job_id], jobs={"a": {}}, stalled={"a", job_id} if marked else {"a"}, meta={"x": "1"})
    client.hset("emq:q:", "x", "1")

    check = StalledChecker(client).check("q")

    assert (check.recovered_ids, check.dropped, check.marked) == (("a",), 0, 0)
    assert check.oddities == ((job_id, "its id is the name of a key of the queue; it stays in active"),)
    after = state(client)
    assert (after["active"], after["meta"], after[""]) == ([job_id], {"x": "1"}, {"x": "1"})


def test_other_jobs_are_recovered_around_every_oddity_at_once(client):
    odd = {"wait": None, "opts": {"opts": "["}, "counter": {"stc": "x"}, "parent": {"parent": "3"}}
    put(
        client,
        active=["z", "ghost", "string", *odd, "a"],
        jobs={"a": {}, "z": {}, **{job_id: fields for job_id, fields in odd.items() if fields}},
        string="no hash",
        stalled={"a", "z", "ghost", "string", *odd},
    )

    check = StalledChecker(client).check("q")

    assert check.recovered_ids == ("a", "parent", "counter", "opts", "z")
    assert [job_id for job_id, _ in check.oddities] == ["parent", "opts", "wait", "string"]
    assert state(client)["active"] == ["string", "wait"]


@pytest.mark.parametrize("kind", [["x"], {"x"}, {"x": 1}, "text"], ids=["list", "set", "zset", "string"])
@pytest.mark.parametrize("others", [(), ("b",)], ids=["alone", "beside a job"])
def test_an_id_that_is_no_hash_is_judged_the_same_by_every_check(client, kind, others):
    put(client, active=["odd", *others], jobs={job_id: {} for job_id in others}, locks=others, odd=kind)
    before = state(client)

    for _ in range(4):
        check = StalledChecker(client).check("q")
        assert check == StalledCheck("q", oddities=(("odd", "emq:q:odd is no hash; it stays in active"),))

    assert state(client) == before


def test_an_id_that_is_no_hash_keeps_no_job_from_being_marked(client):
    put(client, active=["b", "odd", "a"], jobs={"a": {}, "b": {}}, odd="text")

    assert StalledChecker(client).check("q").marked == 2

    assert state(client)["stalled"] == {"a", "b"}


FULL = {
    "opts": '{"kl": 1, "maxStalledCount": 9, "attempts": 9}',
    "stc": "3",
    "atm": "2",
    "ats": "5",
    "priority": "2",
    "parent": '{"fpof": true}',
    "actorMaxStalledCount": "8",
    "pb": "host:7",
    "processedOn": "1700000000123",
    "suspect": "beside:4",
}
ATTEMPTS_USED = {"atm": "1", "opts": '{"attempts": 2}'}


@pytest.mark.parametrize("others", [{}, ATTEMPTS_USED], ids=["which come back", "which fail"])
def test_what_one_job_has_is_not_taken_for_that_of_the_next(client, others):
    jobs = {"a": FULL, "b": {"stc": "1"}, "c": FULL, "d": {}, "e": others, "f": {}}
    put(client, active=list(reversed(jobs)), jobs=jobs, stalled=set(jobs))
    alone = {}
    for job_id, fields in jobs.items():
        put(client, job_id, active=[job_id], jobs={job_id: fields}, stalled={job_id})
        StalledChecker(client).check(job_id)
        alone[job_id] = client.hgetall(f"emq:{job_id}:{job_id}"), lines(client, job_id, job_id)

    check = StalledChecker(client).check("q")

    assert check.failed_ids == (("b", "e") if others else ("b",))
    for job_id in jobs:
        together = client.hgetall(f"emq:q:{job_id}"), lines(client, "q", job_id)
        assert without_times(together) == without_times(alone[job_id])


def lines(client, queue: str, job_id: str) -> list[bytes]:
    """What the log of a job says, without the time of the check."""
    return [line.split(b" ", 1)[1] for line in client.lrange(f"emq:{queue}:{job_id}:logs", 0, -1)]


def without_times(found: tuple) -> tuple:
    fields, log = found
    return {name: value for name, value in fields.items() if name != b"finishedOn"}, log
