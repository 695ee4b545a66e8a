"""The innocent pay nothing for a job that kills its worker: what was only fetched does not stall, and of the jobs
that have stalled before a process runs one at a time.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import redis

from dramatiq_echomq import EchoMQBroker, StalledCheck, StalledChecker

from ..support.job_data import id_of, take
from ..support.queue_data import as_data, came_back, event, put, state
from ..support.servers import wait_until

JOB = {"name": "work", "data": "[]"}
SUSPECT = {**JOB, "stc": "1"}


def begin(client, broker, message) -> None:
    """Begin a job, and wait until Redis knows."""
    broker.emit_before("process_message", message)
    wait_until(lambda: not client.hexists(f"emq:q:{id_of(message)}", "unbegun"))


def worker_dies(client) -> StalledCheck:
    """All locks end, and two checks go by."""
    for lock in client.scan_iter("*:lock"):
        client.delete(lock)
    StalledChecker(client).check("q")
    return StalledChecker(client).check("q")


def test_a_job_that_was_fetched_and_not_begun_goes_back_without_a_stall(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    take(broker)
    client.delete("emq:q:events")

    assert worker_dies(client).recovered_ids == ("a",)

    found = state(client)
    assert found["events"] == [event("waiting", "a", prev="active")]
    assert (found["wait"], found["locks"]) == (["a"], set())
    assert not {"stc", "atm", "unbegun"} & found["a"].keys()


def test_the_jobs_for_which_a_thread_is_idle_are_begun_with_their_pickup(client, broker):
    put(client, wait=[*"edcba"], jobs=dict.fromkeys("abcde", JOB))
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=3))
    put(client, "other", wait=["x"], jobs={"x": JOB})
    _, [busy] = take(broker, queue="other")

    take(broker, 5)

    found = state(client)
    assert [job_id for job_id in "abcde" if "unbegun" not in found[job_id]] == ["a", "b"]
    assert "unbegun" not in state(client, "other")[id_of(busy)]
    check = worker_dies(client)
    assert {job_id: state(client)[job_id].get("stc") for job_id in check.recovered_ids} == {
        **dict.fromkeys("ab", "1"),
        **dict.fromkeys("cde"),
    }
    broker.emit_after("worker_shutdown", None)


def test_a_job_that_was_begun_has_stalled(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    _, [message] = take(broker)
    begin(client, broker, message)
    client.delete("emq:q:events")

    assert worker_dies(client).recovered_ids == ("a",)

    found = state(client)
    assert (found["a"]["stc"], found["a"]["atm"]) == ("1", "1")
    assert found["events"] == came_back("a")


@pytest.mark.parametrize("stalls", [0, 1, 9])
def test_only_what_was_begun_is_charged(client, broker, stalls):
    """Of three fetched jobs one was begun: it alone has stalled, or failed."""
    job = {**JOB, "stc": str(stalls)}
    put(client, wait=["c", "b", "a"], jobs={"a": job, "b": JOB, "c": JOB})
    _, messages = take(broker, 3)
    begin(client, broker, messages[0])

    check = worker_dies(client)

    expected = ((), ("a",)) if stalls else (("a",), ())
    assert (set(check.recovered_ids) - {"b", "c"}, check.failed_ids) == (set(expected[0]), expected[1])
    assert {job_id: state(client)[job_id].get("stc") for job_id in "abc"} == {
        "a": str(stalls + 1),
        "b": None,
        "c": None,
    }


def test_a_job_whose_begin_was_forgotten_by_a_new_pickup_is_unbegun_again(client, broker):
    put(client, wait=["a"], jobs={"a": JOB})
    begin(client, broker, take(broker)[1][0])
    worker_dies(client)

    take(EchoMQBroker(client=client, middleware=[]))
    worker_dies(client)

    assert state(client)["a"]["stc"] == "1"


def test_a_begin_of_an_owner_that_lost_its_job_says_nothing(client, broker):
    put(client, wait=["b", "a"], jobs={"a": JOB, "b": JOB})
    _, [lost, held] = take(broker, 2)
    client.set("emq:q:a:lock", "of another worker")

    broker.emit_before("process_message", lost)
    begin(client, broker, held)

    assert "unbegun" in state(client)["a"]


def test_a_job_is_begun_even_while_redis_is_away(client, broker, monkeypatch):
    put(client, wait=["a"], jobs={"a": JOB})
    _, [message] = take(broker)

    def away(*_, **__):
        raise redis.ConnectionError("Redis is away")

    monkeypatch.setattr(client.connection_pool, "make_connection", away)
    broker.emit_before("process_message", message)

    assert "unbegun" in state(client)["a"]


def test_a_broken_connection_does_not_keep_the_next_begin_from_redis(client, broker):
    put(client, wait=["b", "a"], jobs={"a": JOB, "b": JOB})
    _, messages = take(broker, 2)
    begin(client, broker, messages[0])
    newest = max(int(connection["id"]) for connection in client.client_list())

    assert client.client_kill_filter(_id=newest) == 1

    begin(client, broker, messages[1])


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
def test_a_pickup_that_passes_suspects_only_changes_nothing(client, broker, structure):
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


def test_two_suspects_that_were_taken_at_once_are_run_one_after_the_other(client, broker, monkeypatch):
    """A pickup whose reply was lost may have taken one that nobody knows of yet."""
    for queue in ("q", "other"):
        put(client, queue, wait=["s"], jobs={"s": SUSPECT})
    monkeypatch.setattr(broker.holdings, "set_aside", lambda _: nullcontext((0, 1)))
    consumer, [first] = take(broker)

    assert take(broker, queue="other")[1] == []
    assert state(client, "other")["locks"] == {"s"}
    consumer.ack(first)

    assert [id_of(message) for message in take(broker, queue="other")[1]] == ["s"]


@pytest.mark.parametrize(("job", "locks"), [(JOB, {"a"}), (SUSPECT, set())], ids=["thread", "suspect"])
def test_pickups_of_two_queues_at_once_count_on_nothing_twice(client, broker, monkeypatch, job, locks):
    """Neither on the one idle thread nor on the one suspect that may run."""
    for queue in ("q", "other"):
        put(client, queue, wait=["a"], jobs={"a": job})
    broker.emit_before("worker_boot", SimpleNamespace(worker_threads=1))
    desk_queue = broker._desk("q").queue
    take_from_q = desk_queue.take

    def take_while_another_consumer_takes(*args, **kwargs):
        take(broker, queue="other")
        return take_from_q(*args, **kwargs)

    monkeypatch.setattr(desk_queue, "take", take_while_another_consumer_takes)
    take(broker)

    assert "unbegun" not in state(client)["a"]
    taken_beside = state(client, "other")
    assert taken_beside["locks"] == locks
    assert ("unbegun" in taken_beside["a"]) == bool(locks)
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
        assert time.monotonic() - started < 10

    assert id_of(second) == "s2"
    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] - before < 12
