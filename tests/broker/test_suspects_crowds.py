"""Any number of suspects: fresh jobs start behind them, and after a mass stall some run beside each other."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dramatiq_echomq import EchoMQBroker

from ..support.failures import worker_dies
from ..support.job_data import JOB, SUSPECT, id_of, take
from ..support.queue_data import put, state
from ..support.servers import wait_until


def crowd(client, count: int, *, queue: str = "q", fresh: str = "fresh") -> list[str]:
    """So many suspects, and a job behind them that never stalled."""
    ids = [f"s{number}" for number in range(count)]
    put(client, queue, wait=[fresh, *reversed(ids)], jobs={**dict.fromkeys(ids, SUSPECT), fresh: JOB})
    return ids


@pytest.mark.parametrize("count", [99, 100, 250, 1_000])
def test_a_fresh_job_starts_however_many_suspects_there_are_ahead(client, broker, count):
    put(client, "other", wait=["s"], jobs={"s": SUSPECT})
    take(broker, queue="other")
    crowd(client, count)
    client.config_resetstat()

    assert [id_of(message) for message in take(broker)[1]] == ["fresh"]

    assert client.llen("emq:q:wait") == count
    calls = client.info("commandstats")
    assert calls["cmdstat_evalsha"]["calls"] <= count // 100 + 2
    assert sum(each["calls"] for each in calls.values()) < 5 * count + 60 * (count // 100 + 1)


def test_a_fresh_job_of_the_same_priority_starts_however_many_suspects_there_are_ahead(client, broker):
    put(client, "other", wait=["s"], jobs={"s": SUSPECT})
    take(broker, queue="other")
    ids = [f"s{number}" for number in range(150)]
    put(client, prioritized={job_id: 2**32 + at for at, job_id in enumerate([*ids, "fresh"])}, pc="151")
    put(client, jobs={**dict.fromkeys(ids, SUSPECT), "fresh": JOB})

    assert [id_of(message) for message in take(broker)[1]] == ["fresh"]
    assert {score // 2**32 for score in state(client)["prioritized"].values()} == {1}


@pytest.fixture
def busy(client, broker):
    """A consumer of a worker that runs a suspect of another queue."""
    put(client, "other", wait=["s"], jobs={"s": SUSPECT})
    take(broker, queue="other")
    return broker.consume("q", prefetch=2, timeout=1)


def test_a_suspect_that_may_not_run_here_is_run_by_a_worker_that_is_idle(client, busy):
    """It has been waiting for the marker, which another one took."""
    idle = EchoMQBroker(client=client).consume("q", prefetch=2, timeout=100)
    assert next(idle) is None
    put(client, wait=["s1"], jobs={"s1": SUSPECT})

    assert next(busy) is None

    assert id_of(wait_until(lambda: next(idle), timeout=5)) == "s1"


def test_suspects_that_may_run_nowhere_do_not_keep_a_worker_busy(client, busy):
    put(client, wait=["s1"], jobs={"s1": SUSPECT})
    client.config_resetstat()

    assert [next(busy) for _ in range(10)] == [None] * 10

    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] < 6  # it may have got the marker itself


@contextmanager
def with_threads(broker, threads: int):
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=threads))
    try:
        yield
    finally:
        broker.emit_after("worker_shutdown", None)


def fetch_all(broker, consumer) -> list:
    return list(iter(lambda: next(consumer), None))


def test_after_a_mass_stall_some_suspects_run_beside_each_other(client, broker):
    ids = crowd(client, 8)
    with with_threads(broker, 4):
        consumer = broker.consume("q", prefetch=8, timeout=1)
        first = fetch_all(broker, consumer)

        assert [id_of(message) for message in first] == ["s0", "fresh"]  # it learns that there are so many
        for message in first:
            consumer.ack(message)
        together = fetch_all(broker, consumer)

        assert [id_of(message) for message in together] == ids[1:3]
        assert [state(client)[id_of(message)]["suspect"] for message in together] == ["beside:1", "beside:1"]
        consumer.ack(together[0])
        assert [id_of(message) for message in fetch_all(broker, consumer)] == [ids[3]]


def test_of_suspects_that_stalled_beside_each_other_none_is_charged_and_each_runs_alone(client, broker):
    jobs = {job_id: {**SUSPECT, "ats": "2", "suspect": "beside:2"} for job_id in ("s1", "s2")}
    put(client, active=["s2", "s1"], jobs=jobs)

    assert worker_dies(client).failed_ids == ()

    assert {state(client)[job_id]["stc"] for job_id in jobs} == {"1"}
    with with_threads(broker, 2):
        consumer = broker.consume("q", prefetch=8, timeout=1)
        alone = fetch_all(broker, consumer)
        assert [id_of(message) for message in alone] == ["s1"]
        assert state(client)["s1"]["suspect"] == "alone"
        assert worker_dies(client).failed_ids == ("s1",)


def test_a_suspect_that_runs_alone_again_is_charged_for_its_stall(client, broker):
    """It ran beside others and was given back, so that this is the same attempt once more."""
    put(client, wait=["s"], jobs={"s": {**SUSPECT, "ats": "1", "suspect": "beside:2"}})
    take(broker)
    assert "suspect" not in state(client)["s"]

    assert worker_dies(client).failed_ids == ("s",)


def test_those_that_must_run_alone_hold_up_no_mass(client, broker):
    ids = crowd(client, 6)
    client.hset("emq:q:s0", "suspect", "alone")
    client.hset("emq:q:s1", "suspect", "alone")
    with with_threads(broker, 4):
        consumer = broker.consume("q", prefetch=8, timeout=1)
        ended = []
        while len(ended) < 7:
            message = next(consumer)
            if message is not None:
                ended.append(id_of(message))
                consumer.ack(message)
    assert sorted(ended) == sorted([*ids, "fresh"])
