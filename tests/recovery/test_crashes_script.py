"""The script that releases what crashed workers hold."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dramatiq_echomq import QueueRefused, StalledChecker
from dramatiq_echomq.protocol.scripts import load

from ..support.queue_data import NOW, WOKEN, as_data, dump, key, put, state
from ..support.worker_data import lock, note_missing, register, registered, registration

GRACE = 60_000
A, B = registration("a"), registration("b")


def release_call(client, *texts: bytes, grace: int = GRACE, limit: int = 1_000, offset: int = 0, anchor: bytes = b""):
    args = [key("q", ""), grace, limit, offset, anchor, *texts]
    return load("releaseCrashed-1.lua")(client, [key("q", "echomq:workers")], args)


def release(client, *texts: bytes, limit: int = 1_000, between=lambda: None, **how) -> dict[str, list[str]]:
    """Make as many calls as it takes. Returns the jobs by worker."""
    found: dict[bytes, list[str]] = {}
    offset, anchor = 0, b""
    while offset >= 0:
        offset, anchor, *lists = release_call(client, *texts, limit=limit, offset=offset, anchor=anchor, **how)
        for text, *ids in lists:
            found.setdefault(text, []).extend(job_id.decode() for job_id in ids)
        texts = tuple(found)
        between()
    return {text.split()[0].decode(): list(dict.fromkeys(ids)) for text, ids in found.items()}


def put_jobs(client, **workers: str) -> None:
    """A queue in which workers hold these jobs, one letter each, and register."""
    ids = [job_id for jobs in workers.values() for job_id in jobs]
    put(client, active=ids[::-1], jobs={job_id: {"ats": "1"} for job_id in ids})
    for worker_id, jobs in workers.items():
        lock(client, worker_id, *jobs)
        register(client, registration(worker_id))


def test_a_worker_that_is_missing_for_the_first_time_is_noted_and_keeps_all(client):
    put_jobs(client, a="12", b="3")
    before = state(client)
    assert release(client, A) == {}
    assert registered(client) == {A: "missing", B: "there"}
    assert state(client) == before


def test_within_the_grace_it_still_keeps_all(client):
    put_jobs(client, a="12")
    note_missing(client, A, ms=GRACE - 30_000)
    before = state(client)
    assert release(client, A) == {}
    assert state(client) == before


def test_after_the_grace_its_locks_are_gone_its_jobs_are_marked_and_nothing_else_changes(client):
    put_jobs(client, a="12", b="3", aa="4")
    put(client, wait=["5"], jobs={"5": {}}, stalled={"6"})
    note_missing(client, A, ms=GRACE)

    assert release(client, A) == {"a": ["1", "2"]}

    expected = as_data(
        active=["4", "3", "2", "1"],
        wait=["5"],
        jobs={**{job_id: {"ats": "1"} for job_id in "1234"}, "5": {}},
        locks=["3", "4"],
        stalled={"1", "2", "6"},
        marker=WOKEN,
        **{"1:released": "a:0:0", "2:released": "a:0:1"},
    )
    assert state(client) == expected
    assert registered(client) == {A: "missing", B: "there", registration("aa"): "there"}
    assert release(client, A) == {}  # missing anew: for another who looks after the grace


@pytest.mark.parametrize(
    ("there", "marker"),
    [
        ({}, None),
        ({"wait": ["5"]}, WOKEN),
        ({"prioritized": {"5": 2**32}}, WOKEN),
        ({"paused": ["5"]}, WOKEN),  # left there by a resume
        ({"delayed": {"5": (NOW + 7) * 4096 + 1, "6": (NOW + 9) * 4096}}, {"1": NOW + 7}),
        ({"wait": ["5"], "delayed": {"6": NOW * 4096}}, {"0": 0, "1": NOW}),
        ({"paused": ["5"], "meta": {"paused": "1"}}, None),
        ({"wait": ["5"], "meta": {"concurrency": "1"}}, None),
    ],
    ids=str,
)
def test_the_markers_that_it_may_have_taken_are_put_back_once_it_is_gone(client, there, marker):
    """Else idle workers would learn what is there only when their blocks end."""
    put_jobs(client, a="", b="3")
    put(client, jobs={"5": {}, "6": {}}, **there)
    before = state(client)
    assert release(client, A) == {}
    assert state(client) == before
    note_missing(client, A, ms=GRACE)

    assert release(client, A) == {"a": []}

    assert state(client) == {**before, **({"marker": marker} if marker else {})}


def test_several_workers_are_released_in_one_call(client):
    put_jobs(client, a="12", b="3", c="4", d="")
    note_missing(client, A, B, registration("d"), ms=GRACE)
    found = release(client, A, B, registration("c"), registration("d"))
    assert found == {"a": ["1", "2"], "b": ["3"], "d": []}


def test_a_worker_that_registered_another_connection_keeps_all(client):
    put_jobs(client, a="12")
    note_missing(client, A, ms=60_000)
    register(client, registration("a", 2), before=A)
    assert registered(client) == {registration("a", 2): "there"}
    assert release(client, A) == {}
    assert state(client)["locks"] == {"1", "2"}


def test_a_worker_that_was_there_meanwhile_is_missing_anew(client):
    put_jobs(client, a="12")
    note_missing(client, A, ms=60_000)
    register(client, A)
    assert release(client, A) == {}
    assert registered(client) == {A: "missing"}
    assert state(client)["locks"] == {"1", "2"}


def test_who_looks_next_hears_of_jobs_that_no_check_has_seen_to_and_of_no_others(client):
    put_jobs(client, a="12")
    note_missing(client, A, ms=GRACE)
    release(client, A)
    assert release(client, A) == {}
    note_missing(client, A, ms=GRACE)
    assert release(client, A) == {"a": ["1", "2"]}
    assert StalledChecker(client).check("q").recovered_ids == ("1", "2")
    note_missing(client, A, ms=GRACE)
    put(client, active=["1"])  # taken again by a worker of another runtime, whose lock has just ended
    assert release(client, A) == {"a": []}


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 1_000])
def test_many_calls_do_what_one_does_although_jobs_end_meanwhile(client, limit):
    ids = [str(number) for number in range(30)]
    put(client, active=ids[::-1], jobs={job_id: {} for job_id in ids})
    lock(client, "a", *ids[::3])
    lock(client, "b", *ids[1::3], *ids[2::3])
    register(client, A)
    note_missing(client, A, ms=GRACE)
    ending = iter(ids[1::3])
    found = release(client, A, limit=limit, between=lambda: client.lrem("emq:q:active", 1, next(ending, "none")))
    assert sorted(found["a"], key=int) == ids[::3]
    assert state(client)["stalled"] == set(ids[::3])


@settings(max_examples=40)
@given(
    tokens=st.lists(st.sampled_from(["a:1:1", "b:1:1", "ab:1:1", "a", ":a:1", "token", None]), max_size=12),
    missing=st.sets(st.sampled_from(["a", "b", "ab"])),
    limit=st.integers(1, 13),
)
def test_exactly_the_locks_of_those_who_are_gone_are_released(client, tokens, missing, limit):
    client.flushdb()
    ids = [f"j{number}" for number in range(len(tokens))]
    put(client, **({"active": ids} if ids else {}), jobs={job_id: {} for job_id in ids})
    for job_id, token in zip(ids, tokens, strict=True):
        if token is not None:
            client.set(f"emq:q:{job_id}:lock", token)
    texts = [registration(worker_id) for worker_id in ("a", "b", "ab")]
    register(client, *texts)
    gone = [registration(worker_id) for worker_id in sorted(missing)]
    note_missing(client, *gone, ms=GRACE) if gone else None

    found = release(client, *texts, limit=limit)

    theirs = {job_id for job_id, token in zip(ids, tokens, strict=True) if token and token.split(":")[0] in missing}
    theirs -= {job_id for job_id, token in zip(ids, tokens, strict=True) if token == "a"}
    assert {job_id for jobs in found.values() for job_id in jobs} == theirs
    assert set(found) == missing
    assert state(client).get("stalled", set()) == theirs
    locked = {job_id for job_id, token in zip(ids, tokens, strict=True) if token}
    assert state(client)["locks"] == locked - theirs


def test_odd_ids_and_odd_locks_stop_nothing(client):
    put_jobs(client, a="1")
    odd = ["", "list", b"\xff", "meta", "1", "ghost"]
    client.rpush("emq:q:active", *odd)
    client.rpush("emq:q:list:lock", "no text")
    lock(client, "a", "", "meta")
    client.set(b"emq:q:\xff:lock", "a:0:9")
    note_missing(client, A, ms=GRACE)
    offset, _, found = release_call(client, A)
    assert offset == -1
    assert sorted(found[1:]) == [b"", b"1", b"meta", b"\xff"]


@pytest.mark.parametrize("name", ["echomq:workers", "active", "stalled", "meta"])
@pytest.mark.parametrize("script", ["releaseCrashed-1.lua", "registerWorker-1.lua"])
def test_a_key_of_the_wrong_type_is_refused_and_nothing_is_written(client, name, script):
    put_jobs(client, a="1")
    note_missing(client, A, ms=GRACE)
    client.delete(f"emq:q:{name}")
    client.set(f"emq:q:{name}", "text")
    before = dump(client)
    args = {"releaseCrashed-1.lua": [GRACE, 1_000, 0, "", A], "registerWorker-1.lua": [A, "", 600_000]}[script]
    with pytest.raises(QueueRefused, match=name):
        load(script)(client, ["emq:q:echomq:workers"], ["emq:q:", *args])
    assert dump(client) == before


def test_an_owner_cannot_renew_a_lock_that_was_released_but_one_that_only_ended(client):
    put_jobs(client, a="12")
    note_missing(client, A, ms=GRACE)
    release(client, A)
    client.delete("emq:q:2:released")  # as if its lock had run out
    packed = [msgpack.packb(texts) for texts in (["a:0:0", "a:0:1"], ["1", "2"])]
    args = ["emq:q:", *packed, 90_000, msgpack.packb(["1", "1"])]
    lost, *_ = load("extendLocks-1.lua")(client, ["emq:q:stalled"], args)
    assert lost == [b"a:0:0"]
    assert (state(client)["locks"], state(client)["stalled"]) == ({"2"}, {"1"})


def test_a_job_that_the_same_worker_fetches_again_can_be_renewed(client):
    put_jobs(client, a="1")
    client.set("emq:q:1:released", "a:0:0")
    client.delete("emq:q:1:lock")
    args = ["emq:q:", msgpack.packb(["a:7:0"]), msgpack.packb(["1"]), 90_000, msgpack.packb(["1"])]
    assert load("extendLocks-1.lua")(client, ["emq:q:stalled"], args)[0] == []


def test_what_is_remembered_of_workers_and_locks_ends_by_itself(client):
    put_jobs(client, a="1")
    note_missing(client, A, ms=GRACE)
    release(client, A)
    for name in ("echomq:workers", "1:released"):
        assert 0 < client.pttl(f"emq:q:{name}") <= 600_000
