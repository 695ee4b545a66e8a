"""The innocent pay little for a job that kills its worker: of the jobs that have stalled before a process runs one
at a time.
"""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.suspects import LARGEST_CROWD, Suspects

from ..support.brokers import working
from ..support.failures import worker_dies
from ..support.job_data import JOB, SUSPECT, id_of, message, take
from ..support.queue_data import as_data, put, state
from ..support.servers import wait_until


@pytest.mark.parametrize("stalls", [0, 1, 9])
def test_each_job_in_flight_is_charged_one_stall(client, broker, stalls):
    put(client, wait=["b", "a"], jobs={"a": {**JOB, "stc": str(stalls)}, "b": JOB})
    take(broker, 2)

    check = worker_dies(client)

    assert (check.failed_ids, "b" in check.recovered_ids) == (("a",) if stalls else (), True)
    assert {job_id: state(client)[job_id].get("stc") for job_id in "ab"} == {"a": str(stalls + 1), "b": "1"}


def test_one_suspect_is_taken_at_a_time_and_the_others_stay_in_their_places(client, broker):
    jobs = {"s1": SUSPECT, "a": JOB, "s2": SUSPECT, "b": JOB, "s3": SUSPECT}
    put(client, wait=[*reversed(jobs)], jobs=jobs)

    consumer, messages = take(broker, 5)

    assert [id_of(message) for message in messages] == ["s1", "a", "b"]
    found = state(client)
    assert (found["wait"], found["active"]) == (["s3", "s2"], ["b", "a", "s1"])
    assert {"s2": found["s2"], "s3": found["s3"], "locks": set()} == as_data(jobs={"s2": SUSPECT, "s3": SUSPECT})
    assert {entry["jobId"] for entry in found["events"]} == {"s1", "a", "b"}

    consumer.ack(messages[0])
    assert id_of(next(consumer)) == "s2"


def test_prioritized_suspects_that_are_passed_stay_in_their_places(client, broker):
    scores = {"s1": 2**32 + 1, "s2": 2**32 + 2, "a": 2 * 2**32 + 3, "s3": 2 * 2**32 + 4, "b": 3 * 2**32 + 5}
    put(client, prioritized=scores, jobs={job_id: SUSPECT if job_id[0] == "s" else JOB for job_id in scores}, pc="5")

    _, messages = take(broker, 5)

    assert [id_of(message) for message in messages] == ["s1", "a", "b"]
    found = state(client)
    assert (found["prioritized"], found["pc"]) == ({"s2": scores["s2"], "s3": scores["s3"]}, "5")


@pytest.mark.parametrize("structure", ["wait", "prioritized"])
def test_a_fetch_that_passes_suspects_only_changes_nothing(client, broker, structure):
    put(client, "other", wait=["s"], jobs={"s": SUSPECT})
    take(broker, queue="other")
    ids = ["s3", "s2", "s1"]
    put(client, jobs=dict.fromkeys(ids, SUSPECT), **{structure: ids if structure == "wait" else dict.fromkeys(ids, 5)})
    before = state(client)

    assert take(broker, 2)[1] == []

    found = state(client)
    assert {**found, "marker": None} == {**before, "marker": None}


def test_suspects_of_all_queues_of_a_process_count(client, broker):
    for queue in ("q", "other"):
        put(client, queue, wait=["s"], jobs={"s": SUSPECT})
    consumer, [message] = take(broker)

    assert take(broker, queue="other")[1] == []
    consumer.ack(message)

    assert [id_of(message) for message in take(broker, queue="other")[1]] == ["s"]


def test_another_process_may_run_another_suspect(client, broker):
    put(client, wait=["s2", "s1"], jobs={"s1": SUSPECT, "s2": SUSPECT})
    take(broker)

    assert [id_of(message) for message in take(EchoMQBroker(client=client, middleware=[]))[1]] == ["s2"]


@pytest.mark.parametrize(("job", "locks"), [(JOB, {"a"}), (SUSPECT, {"a"})], ids=["thread", "suspect"])
def test_fetches_of_two_queues_at_once_count_on_nothing_twice(client, broker, monkeypatch, job, locks):
    """Neither on the one idle thread nor on the one suspect that may run."""
    for queue in ("q", "other"):
        put(client, queue, wait=["a"], jobs={"a": job})
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=2 if job is SUSPECT else 1))
    queue = broker.channel("q").queue
    finish_and_fetch = queue.finish_and_fetch

    def while_another_consumer_fetches(*args, **kwargs):
        take(broker, queue="other")
        return finish_and_fetch(*args, **kwargs)

    monkeypatch.setattr(queue, "finish_and_fetch", while_another_consumer_fetches)
    take(broker)

    assert state(client)["locks"] == locks
    assert state(client, "other")["locks"] == set()
    broker.emit_after("worker_shutdown", None)


@pytest.mark.parametrize("how", ["ack", "nack", "requeue", "lost"])
def test_the_next_suspect_comes_when_the_one_that_runs_was(client, broker, how):
    put(client, "other", wait=["s1"], jobs={"s1": SUSPECT})
    consumer, [message] = take(broker, queue="other")
    put(client, wait=["s2"], jobs={"s2": SUSPECT})
    assert take(broker)[1] == []

    if how == "lost":
        client.set("emq:other:s1:lock", "of another worker")
        broker.locks.renew()
    else:
        getattr(consumer, how)([message] if how == "requeue" else message)

    assert [id_of(message) for message in take(broker)[1]] == ["s2"]


def test_a_consumer_that_finds_only_suspects_waits_for_the_one_that_runs(client, broker):
    put(client, wait=["s2", "s1"], jobs={"s1": SUSPECT, "s2": SUSPECT})
    consumer = broker.consume("q", prefetch=2, timeout=10_000)
    first = next(consumer)
    before = client.info("commandstats")["cmdstat_evalsha"]["calls"]

    threading.Timer(0.35, consumer.ack, [first]).start()
    started = time.monotonic()
    while (second := next(consumer)) is None:
        assert time.monotonic() - started < 8

    assert id_of(second) == "s2"
    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] - before < 12


def note_crowd(suspects: Suspects, waiting: int) -> None:
    suspects.note_fetch("q", left=waiting, crowd=waiting, has_one=False)


@pytest.mark.parametrize("threads", [2, 8, 160])
def test_a_crowd_of_suspects_runs_together_however_many_threads_there_are(threads):
    suspects = Suspects()
    note_crowd(suspects, min(threads, LARGEST_CROWD) - 1)
    assert suspects.allowed("q", 0, threads) == (1, False)
    note_crowd(suspects, min(threads, LARGEST_CROWD))
    assert suspects.allowed("q", 0, threads) == (threads // 2, True)


def test_queues_in_which_suspects_wait_take_turns():
    """Those in which none waits come after them, and who is gone has no turn."""

    def note(queue: str, *, left: int, has_one: bool = False) -> None:
        suspects.note_fetch(queue, left=left, crowd=0, has_one=has_one)

    def may_run_one() -> str:
        return "".join(queue for queue in "abc" if suspects.allowed(queue, 0, 8)[0])

    suspects = Suspects()
    assert may_run_one() == "abc"
    note("a", left=2)
    note("b", left=9)
    assert may_run_one() == "a"
    note("a", left=1, has_one=True)
    assert may_run_one() == "b"
    note("b", left=9)  # it was not free after all
    assert may_run_one() == "b"
    note("b", left=8, has_one=True)
    note("a", left=0, has_one=True)
    assert may_run_one() == "b"
    suspects.note_closed("b")
    assert may_run_one() == "abc"


def test_suspects_run_soon_beside_a_queue_that_is_never_empty(client, broker):
    """Each fetch from it might find one."""
    dramatiq.actor(lambda: time.sleep(0.001), actor_name="work", queue_name="full", broker=broker)
    dramatiq.actor(lambda number: ran.append(number), actor_name="suspect", queue_name="q", broker=broker)
    ran: list[int] = []
    broker.enqueue_many(message(number, actor="suspect") for number in range(6))
    for job_id in client.lrange("emq:q:wait", 0, -1):
        client.hset(b"emq:q:" + job_id, "stc", 1)
    broker.enqueue_many(message(queue="full") for _ in range(4_000))
    with working(broker, worker_threads=8, worker_timeout=1_000):
        wait_until(lambda: len(ran) == 6)
        still_there = client.llen("emq:full:wait")
        client.delete("emq:full:wait")
    assert still_there
