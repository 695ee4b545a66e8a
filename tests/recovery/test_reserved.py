"""Ids that name keys of the queue itself: what is done to a job by its id is not done to such a key."""

from __future__ import annotations

import pytest

from dramatiq_echomq import EchoMQBroker, StalledChecker

from ..support.job_data import JOB, ack, nack, take
from ..support.queue_data import NOW, put, state

pytestmark = pytest.mark.usefixtures("clock")

#: A key of each kind that a queue may have, by name.
KEYS = {
    "delayed": {"x": (NOW + 9_000) * 4096},
    "prioritized": {"x": 2**33},
    "meta": {"version": "echomq:1"},
    "id": "7",
    "pc": "1",
    "waiting-children": {"x": 5},
    "repeat": {"nightly": 5},
    "repeat:nightly": {"name": "work", "every": "9"},
    "limiter": "1",
    "stalled-check": "somebody",
    "metrics:completed": {"count": "3"},
    "metrics:completed:data": ["1"],
    "de:d": "x",
    "dn:d": {"name": "work"},
    "echomq:workers": {"w": 1},
    "x": {**JOB, "deid": "d"},
    "x:lock": "token",
    "x:logs": ["line"],
    "x:released": "token",
    "x:dependencies": {"emq:q:y"},
    "x:processed": {"emq:q:y": "1"},
    "x:failed": {"emq:q:y": "why"},
    "x:unsuccessful": {"emq:q:y": 1},
    "a:b:c": JOB,
    "a:b:c:failed": {"emq:q:y": "why"},
}
#: All ids that are no job's; those without a key in KEYS are there in every test.
RESERVED = [
    *(name for name in KEYS if name not in ("x", "a:b:c")),
    "wait",
    "paused",
    "active",
    "completed",
    "failed",
    "stalled",
    "events",
    "marker",
]


def put_keys(client) -> dict:
    """Put the keys, and return what must be left of them."""
    put(client, **KEYS)
    return {name: value for name, value in state(client).items() if name in KEYS}


def left(client) -> dict:
    return {name: value for name, value in state(client).items() if name in KEYS}


@pytest.mark.parametrize("end", [ack, nack])
def test_pruning_finished_jobs_deletes_no_key_of_the_queue(client, end):
    before = put_keys(client)
    finished = "completed" if end is ack else "failed"
    client.zadd(f"emq:q:{finished}", dict.fromkeys(RESERVED, 1))
    put(client, wait=["a"], jobs={"a": JOB})
    broker = EchoMQBroker(client=client, middleware=[], keep_completed=1, keep_failed=1)

    end(broker)

    assert state(client)[finished] == {"a": NOW}
    assert left(client) == before
    assert state(client)["meta"]


@pytest.mark.parametrize(
    "opts", ['{"removeOnFail": 1}', '{"removeOnFail": {"age": 9}}', "{}"], ids=["count", "age", "ttl"]
)
def test_a_check_that_prunes_deletes_no_key_of_the_queue(client, opts):
    before = put_keys(client)
    put(client, active=["a"], jobs={"a": {"opts": opts}}, stalled={"a"}, failed=dict.fromkeys(RESERVED, 1))

    StalledChecker(client, max_stalled_count=0, dead_message_ttl=60_000).check("q")

    assert state(client)["failed"] == {"a": NOW}
    assert left(client) == before


@pytest.mark.parametrize("name", RESERVED)
def test_a_check_leaves_such_an_id_in_active(client, name):
    put_keys(client)
    put(client, active=["a", name], jobs={"a": {}}, stalled={"a"}, wait=["w"], failed={"f": 1}, completed={"c": 1})
    before = left(client)

    for _ in range(3):
        check = StalledChecker(client).check("q")
        assert check.oddities == ((name, "its id is the name of a key of the queue; it stays in active"),)

    assert client.lrange("emq:q:active", 0, -1) == [name.encode()]
    assert left(client) == before


@pytest.mark.parametrize("name", RESERVED)
def test_such_an_id_is_not_fetched(client, broker, name):
    put_keys(client)
    put(client, wait=["a", name], jobs={"a": JOB}, failed={"f": 1}, completed={"c": 1}, stalled={"s"})
    before = left(client)

    _, messages = take(broker)

    assert [message.job.job_id for message in messages] == ["a"]
    assert left(client) == before


@pytest.mark.parametrize("name", RESERVED)
def test_such_an_id_cannot_be_retried(client, broker, name):
    before = put_keys(client)
    put(client, failed={name: 1, "f": 1})

    assert broker.retry("q", name) is False

    assert state(client)["failed"] == {"f": 1}
    assert left(client) == before


def test_a_queue_with_such_ids_can_be_flushed(client, broker):
    """Schedulers go as schedulers, and the meta stays."""
    meta = put_keys(client)["meta"]
    client.zadd("emq:q:failed", dict.fromkeys(RESERVED, 1))

    broker.flush("q")

    after = state(client)
    assert after["meta"] == meta
    assert not {"failed", "repeat", "repeat:nightly"} & after.keys()


@pytest.mark.parametrize(
    "job_id", ["waiter", "meta2", "repeat:nightly:1700000000000", "7", "locks", "de", "x-1:y", "a:b:failed"]
)
def test_other_ids_are_jobs(client, job_id):
    put(client, active=[job_id], jobs={job_id: {}}, stalled={job_id})

    assert StalledChecker(client).check("q").recovered_ids == (job_id,)
