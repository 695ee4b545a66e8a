"""Retrying a failed job by its id."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from ..support.job_data import JOB, take
from ..support.queue_data import WOKEN, as_data, event, put, state

FAILED = {
    **JOB,
    "atm": "2",
    "ats": "3",
    "stc": "2",
    "defa": "x",
    "failedReason": "r",
    "stacktrace": "[]",
    "finishedOn": "5",
}
RETRIED = {**JOB, "ats": "3"}


@pytest.mark.parametrize("job_id", ["f", b"f"])
@pytest.mark.parametrize(
    ("job", "queue", "expected"),
    [
        ({}, {}, {"wait": ["f"], "marker": WOKEN}),
        ({}, {"wait": ["w"]}, {"wait": ["f", "w"], "marker": WOKEN}),
        ({}, {"meta": {"paused": "1"}}, {"paused": ["f"], "meta": {"paused": "1"}}),
        ({"priority": "2"}, {}, {"prioritized": {"f": 2 * 2**32 + 1}, "pc": "1", "marker": WOKEN}),
        ({}, {"meta": {"concurrency": "0"}}, {"wait": ["f"], "meta": {"concurrency": "0"}}),
    ],
    ids=["empty", "waiting", "paused", "priority", "at its concurrency"],
)
def test_retry_gives_a_failed_job_another_life(client, broker, job, queue, expected, job_id):
    put(client, failed={"f": 5, "g": 6}, jobs={"f": {**FAILED, **job}}, **queue)

    assert broker.retry("q", job_id) is True

    assert state(client) == as_data(
        failed={"g": 6}, jobs={"f": {**RETRIED, **job}}, events=[event("waiting", "f", prev="failed")], **expected
    )


def test_a_retried_job_that_had_no_attempts_left_survives_its_first_stall(client, broker):
    put(client, failed={"f": 5}, jobs={"f": {**FAILED, "opts": '{"attempts": 2}'}})
    broker.retry("q", "f")
    take(broker)
    client.delete("emq:q:f:lock")

    checker = StalledChecker(client)

    assert (checker.check("q").marked, checker.check("q").recovered_ids) == (1, ("f",))


@pytest.mark.parametrize(
    "queue",
    [{}, {"jobs": {"f": JOB}, "completed": {"f": 5}}, {"jobs": {"f": JOB}, "wait": ["f"]}],
    ids=["unknown", "completed", "waiting"],
)
def test_retry_of_a_job_that_has_not_failed_changes_nothing(client, broker, queue):
    put(client, **queue)
    before = state(client)

    assert broker.retry("q", "f") is False

    assert state(client) == before


def test_a_retry_trims_the_events_to_what_the_meta_says(client, broker):
    put(client, failed={"a": 1}, jobs={"a": {}}, meta={"opts.maxLenEvents": "10"})
    for number in range(500):
        client.xadd("emq:q:events", {"event": "drained", "number": number})

    assert broker.retry("q", "a")

    assert client.xlen("emq:q:events") < 300
