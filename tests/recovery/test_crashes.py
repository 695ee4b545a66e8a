"""How crashed workers are found: real connections, one look after the other, called directly."""

from __future__ import annotations

import math
import time

import pytest
import redis

from dramatiq_echomq import Settings
from dramatiq_echomq.protocol.registrations import WorkerRegistration, connection_name
from dramatiq_echomq.recovery import crashes

from ..support.brokers import lines, recoverer_of
from ..support.queue_data import dump, put, state
from ..support.worker_data import closed, connected, lock, note_missing, register, registered, registration


def test_the_jobs_of_a_worker_whose_connection_closed_come_back_after_the_grace(client, worker, watch, caplog):
    own, text = worker("a", "1", "2")
    _, other_text = worker("b", "3")
    look, recorder = watch()
    closed(client, own)

    look()
    assert registered(client) == {text: "missing", other_text: "there"}
    assert recorder.signals == []
    time.sleep(0.12)
    look()

    found = state(client)
    assert (found["wait"], found["locks"], found["active"].count("3")) == (["2", "1"], {"3"}, 1)
    assert (found["1"]["stc"], found["1"]["atm"]) == ("1", "1")
    assert registered(client) == {other_text: "there"}
    assert recorder.signals == [
        ("crash", "q", ("host:a", ("1", "2"))),
        ("check", "q", (2, 0)),
        ("recovered", "q", ("1", "2")),
    ]
    assert lines(caplog, "WARNING") == [
        "Worker host:a is gone, its connection to Redis has closed. 2 jobs of queue 'q' that it ran: '1', '2'",
        "2 stalled jobs of queue 'q' brought back: '1', '2'",
    ]


def test_workers_that_are_there_cost_nothing_and_keep_their_jobs(client, worker, watch):
    worker("a", "1")
    look, recorder = watch()
    before = state(client)
    for _ in range(3):
        assert look() == crashes.PERIOD
        time.sleep(0.03)
    found = state(client)
    assert {name: found[name] for name in before} == before
    assert recorder.signals == []


def test_a_worker_that_comes_back_with_another_connection_keeps_its_jobs(redis_url, client, worker, watch):
    own, text = worker("a", "1")
    look, recorder = watch()
    closed(client, own)
    look()
    again, new_text = connected(redis_url, client, "a")
    client.zrem("emq:q:echomq:workers", text)
    time.sleep(0.12)
    look()
    assert registered(client) == {new_text: "there"}
    assert (state(client)["locks"], recorder.signals) == ({"1"}, [])
    again.close()


def test_jobs_that_stalled_too_often_fail_as_in_any_check(client, worker, watch):
    own, _ = worker("a", "1", "2")
    client.hset("emq:q:1", "stc", 1)
    look, recorder = watch()
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    assert recorder.named("failed") == [("q", ("1",))]
    assert recorder.named("recovered") == [("q", ("2",))]


def test_the_check_that_follows_does_not_wait_for_the_next_sweep(client, worker, watch):
    own, _ = worker("a", "1")
    client.set("emq:q:stalled-check", "another sweeper", px=60_000)
    look, recorder = watch()
    closed(client, own)

    look()
    time.sleep(0.12)
    look()

    assert recorder.named("recovered") == [("q", ("1",))]
    assert client.get("emq:q:stalled-check") == b"another sweeper"


def test_a_fleet_looks_once_a_second_and_brings_jobs_back_within_5_s():
    """By default: one look misses the worker, and another one does once the grace is over."""
    looks = 1 + math.ceil(Settings.load().crash_grace / crashes.THROTTLE)

    assert crashes.THROTTLE >= 1_000
    assert looks * (crashes.PERIOD + crashes.SPREAD) < 5


def test_each_queue_of_a_worker_is_seen_to(redis_url, client, worker, watch):
    own, text = worker("a", "1")
    put(client, "r", active=["2"], jobs={"2": {}})
    lock(client, "a", "2", queue="r")
    register(client, text, queue="r")
    look, recorder = watch("q", "r", "empty")
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    assert recorder.named("recovered") == [("q", ("1",)), ("r", ("2",))]
    assert {**registered(client), **registered(client, "r")} == {}


@pytest.mark.parametrize("name", ["", "somebody", connection_name("b")])
def test_the_connection_of_somebody_else_is_no_proof_that_a_worker_lives(redis_url, client, watch, name):
    """It has the id with which the worker is registered, and not its name."""
    with redis.Redis.from_url(redis_url, single_connection_client=True, client_name=name) as other:
        text = registration("a", other.client_id(), client.info("server")["run_id"])
        put(client, active=["1"], jobs={"1": {}})
        lock(client, "a", "1")
        register(client, text)
        look, recorder = watch()
        look()
        time.sleep(0.12)
        look()
    assert recorder.named("recovered") == [("q", ("1",))]
    assert registered(client) == {}


@pytest.mark.parametrize("whose", ["nobody", "somebody else"])
def test_after_a_restart_of_redis_nothing_is_known_of_a_worker_until_it_registers_anew(redis_url, client, watch, whose):
    """Its id stands for nobody yet, or for somebody else: ids start anew."""
    with redis.Redis.from_url(redis_url, single_connection_client=True) as other:
        text = registration("a", 10**9 if whose == "nobody" else other.client_id(), "the run before")
        put(client, active=["1"], jobs={"1": {}})
        lock(client, "a", "1")
        register(client, text)
        note_missing(client, text, ms=60_000)
        look, recorder = watch()
        for _ in range(3):
            look()
            time.sleep(0.03)
    assert state(client)["locks"] == {"1"}
    assert recorder.signals == []


def test_many_looks_at_one_time_are_one(client, worker, monkeypatch):
    monkeypatch.setattr(crashes, "THROTTLE", 60_000)
    worker("a", "1")
    watches = [recoverer_of(client, "q", "r")[0].crashes for _ in range(3)] + [
        recoverer_of(client, "r", "q")[0].crashes
    ]
    waits = [watch.look() for watch in watches]
    assert waits[0] == crashes.PERIOD
    assert all(crashes.PERIOD < wait <= 60 + crashes.SPREAD for wait in waits[1:])
    client.config_resetstat()
    for watch in watches:
        watch.look()
    assert "cmdstat_client|list" not in client.info("commandstats")


def test_where_nobody_is_registered_nobody_is_looked_for(client, watch):
    look, _ = watch("q", "r")
    client.config_resetstat()
    assert look() == crashes.PERIOD_WITHOUT_WORKERS
    assert "cmdstat_client|list" not in client.info("commandstats")
    assert dump(client) == {}


def test_of_very_many_workers_each_look_asks_for_a_share_and_all_are_asked_for(monkeypatch):
    monkeypatch.setattr(crashes, "CONNECTIONS_PER_LOOK", 10)
    workers = {number: WorkerRegistration(f"w{number}", number, "run", "host") for number in range(35)}
    shares = []
    for second in range(4):
        monkeypatch.setattr(crashes.time, "time", lambda second=second: 100.5 + second)
        shares.append(crashes.share_of(workers))
    assert sorted(len(share) for share in shares) == [8, 9, 9, 9]
    assert shares[0] | shares[1] | shares[2] | shares[3] == workers
    few = {number: workers[number] for number in range(10)}
    assert crashes.share_of(few) == few
