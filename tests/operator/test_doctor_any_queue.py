"""The doctor on any queue, and on one whose jobs move meanwhile."""

from __future__ import annotations

import threading

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from ..support.operator_data import repaired
from ..support.queue_data import META, put, state

PLACES = st.sets(st.sampled_from(["wait", "paused", "active", "delayed", "prioritized", "completed", "failed"]))

pytestmark = pytest.mark.usefixtures("clock")


@settings(max_examples=25)
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
            put(client, jobs={job_id: {"finishedOn": "5"} if finished else {}})
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
    client.set("emq:q:stalled-check", "somebody", px=600_000)  # who sees to jobs without a lock, as these are
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
