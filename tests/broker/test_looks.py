"""What a script finds out for a whole call at once makes no difference to any job of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dramatiq_echomq import QueueRefused
from dramatiq_echomq.broker.jobs import FetchedJob, Outcome
from dramatiq_echomq.broker.queue import DEFAULT_RULES, NOTHING, Fetch, JobQueue
from dramatiq_echomq.broker.replies import FINISHED
from dramatiq_echomq.broker.rules import Rules
from dramatiq_echomq.protocol.keys import QueueKeys

from ..support.queue_data import FIELDS, LOCK, META, NOW, put, state

pytestmark = pytest.mark.usefixtures("clock")
TRIED = settings(max_examples=60)

#: The fields of jobs to fetch, by what is odd about them; None has no hash.
TO_FETCH = {
    "plain": {},
    "suspect": {"stc": "1", "ats": "1"},
    "retried": {"stc": "0", "ats": "12", "timestamp": str(NOW)},
    "ghost": None,
    "deferred": {"defa": "too late", "pb": "host:1"},
    "own": {"opts": '{"lockDuration": 400}'},
    "unnamed": {"name": "", "timestamp": "x"},
}
#: The fields of jobs to finish.
TO_FINISH = {
    "plain": {},
    "retried": {"atm": "1", "ats": "2", "failedReason": "before", "stacktrace": '["before"]'},
    "removed": {"opts": '{"removeOnComplete": true, "removeOnFail": true}'},
    "kept": {"opts": '{"removeOnComplete": false, "priority": 3}'},
    "unreadable": {"opts": "{", "parent": "["},
    "child": {"parentKey": "emq:q:p"},
    "parent": {},
    "again": {},
    "marked": {},
    "ghost": None,
    "lost": {},
    "string": None,
}


def a_queue_that_was_looked_at(client, rules: Rules = DEFAULT_RULES) -> JobQueue:
    """A queue whose next call looks at nothing but what it needs."""
    queue = JobQueue(QueueKeys("q"), client, client, rules)
    queue.finish_and_fetch([])
    return queue


@given(
    waiting=st.lists(st.sampled_from([*TO_FETCH]), max_size=6),
    prioritized=st.lists(st.sampled_from([*TO_FETCH]), max_size=3),
    count=st.integers(1, 6),
    suspects=st.integers(0, 2),
    is_together=st.booleans(),
    concurrency=st.sampled_from(["", "2"]),
    rare=st.sampled_from(["delayed", "pc"]),
)
@TRIED
def test_jobs_are_fetched_as_they_are_where_there_are_delays_or_priorities(
    client, waiting, prioritized, count, suspects, is_together, concurrency, rare
):
    def fetched(**structures):
        client.flushdb()
        queue = a_queue_that_was_looked_at(client)
        line = {f"w{place}": kind for place, kind in enumerate(waiting)}
        urgent = {f"p{place}": kind for place, kind in enumerate(prioritized)}
        jobs = {job_id: TO_FETCH[kind] for job_id, kind in (line | urgent).items()}
        put(
            client,
            meta={**META, **({"concurrency": concurrency} if concurrency else {})},
            jobs={job_id: fields for job_id, fields in jobs.items() if fields is not None},
            **({"wait": [*reversed(line)]} if line else {}),
            **({"prioritized": {job_id: 2**32 + place for place, job_id in enumerate(urgent)}} if urgent else {}),
            **structures,
        )
        reply = queue.finish_and_fetch([], Fetch("call", count, suspects, is_together))
        found = state(client)
        for name in structures:
            found.pop(name, None)
        return reply._replace(due_in=-1), found

    assert fetched() == fetched(**{rare: {"later": (NOW + 60_000) * 4096} if rare == "delayed" else "7"})


@given(
    ends=st.lists(st.tuples(st.sampled_from([*TO_FINISH]), st.sampled_from(["completed", "failed"])), max_size=7),
    keep=st.integers(0, 3),
    earlier=st.integers(0, 3),
)
@TRIED
def test_jobs_that_finish_together_finish_as_one_by_one(client, ends, keep, earlier):
    ids = [f"j{place}" for place in range(len(ends))]

    def finished(together: bool):
        client.flushdb()
        queue = a_queue_that_was_looked_at(client, Rules(keep_completed=keep, keep_failed=keep))
        kinds = dict(zip(ids, (kind for kind, _ in ends), strict=True))

        def those(kind: str) -> list[str]:
            return [job_id for job_id, each in kinds.items() if each == kind]

        old = {f"old{place}": NOW - 10 + place for place in range(earlier)}
        put(
            client,
            meta=META,
            completed={"oldest": 1, **old, **dict.fromkeys(those("again")[:1], NOW)},
            jobs={each: TO_FINISH[kind] for each, kind in kinds.items() if TO_FINISH[kind] is not None},
            locks=[each for each in ids if kinds[each] != "lost"],
            stalled={"another", *those("marked")},
            wait=["next"],
            waiting_children={"p": 1},
            **({"active": ids} if ids else {}),
            **{f"{each}:dependencies": {"emq:q:other"} for each in those("parent")},
            **dict.fromkeys(those("string"), "a stranger's"),
        )
        put(client, jobs={"p": {}}, **{"p:dependencies": {"emq:q:x", *[f"emq:q:{each}" for each in those("child")]}})
        for each in those("kept"):
            client.hdel(f"emq:q:{each}", *FIELDS)
        parts = [
            (FetchedJob(each.encode(), LOCK["token"].encode(), b"", b"", b"1", 0, 1), Outcome(target, "7", trace))
            for each, (_, target) in zip(ids, ends, strict=True)
            for trace in ["" if target == "completed" else '["trace"]']
        ]
        replies = []
        for calls in [parts] if together else [[part] for part in parts]:
            replies += queue.finish_and_fetch(calls).finished
        found = state(client)
        ended = {each for each, reply in zip(ids, replies, strict=True) if reply.outcome}
        assert not ended & ({*found.get("active", [])} | found["stalled"] | found["locks"])
        return replies, found

    assert finished(together=True) == finished(together=False)


@pytest.mark.parametrize("own", ['{"removeOnComplete": 2}', '{"removeOnComplete": {"age": 60}}'])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_job_with_its_own_rule_does_not_make_others_stay_or_go(client, own, place):
    opts = [own if each == place else "{}" for each in range(3)]
    put(
        client,
        meta=META,
        active=["a", "b", "c"],
        locks="abc",
        jobs={job_id: {"opts": text} for job_id, text in zip("abc", opts, strict=True)},
        completed={f"old{number}": NOW - 10_000 + number for number in range(5)},
    )
    lock = LOCK["token"].encode()
    parts = [
        (FetchedJob(each, lock, b"", b"", b"1", 0, 1), Outcome("completed", "1", "")) for each in (b"a", b"b", b"c")
    ]

    reply = a_queue_that_was_looked_at(client, Rules(keep_completed=4)).finish_and_fetch(parts)

    assert [each.outcome for each in reply.finished] == [FINISHED] * 3
    # The others go by the rule of the worker, at the end: four stay in all.
    assert {*state(client)["completed"]} == {"a", "b", "c", "old4"}


@pytest.mark.parametrize("fetches", [False, True])
@pytest.mark.parametrize("name", ["active", "stalled", "completed", "failed", "marker", "events", "meta"])
def test_a_key_of_the_wrong_type_is_found_before_anything_is_written(client, name, fetches):
    put(client, wait=["b"], active=["a"], locks="a", jobs={"a": {}, "b": {}}, completed={"old": 1}, stalled={"a"})
    queue = a_queue_that_was_looked_at(client)
    client.delete(f"emq:q:{name}")
    client.set(f"emq:q:{name}", "a stranger's")
    before = state(client)
    job = FetchedJob(b"a", LOCK["token"].encode(), b"", b"", b"1", 0, 1)

    with pytest.raises(QueueRefused, match=rf"emq:q:{name} is a string and should be a .*Nothing was written"):
        queue.finish_and_fetch([(job, Outcome("completed", "1", ""))], Fetch("call", 1) if fetches else NOTHING)

    assert state(client) == before


@pytest.mark.parametrize("name", ["active", "marker", "events", "meta"])
def test_a_key_of_the_wrong_type_is_found_before_a_job_is_fetched(client, name):
    put(client, wait=["b"], jobs={"b": {}})
    queue = a_queue_that_was_looked_at(client)
    client.set(f"emq:q:{name}", "a stranger's")
    before = state(client)

    with pytest.raises(QueueRefused, match=rf"emq:q:{name} is a string and should be a .*Nothing was written"):
        queue.finish_and_fetch([], Fetch("call", 1))

    assert state(client) == before
