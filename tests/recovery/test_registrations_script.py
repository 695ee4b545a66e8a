"""The scripts that register workers and look at those who are registered."""

from __future__ import annotations

import time

from dramatiq_echomq.protocol.scripts import load

from ..support.queue_data import dump, key
from ..support.worker_data import note_missing, register, registered, registration

A, B = registration("a"), registration("b")


def test_workers_that_nobody_has_refreshed_or_seen_for_long_are_forgotten(client):
    now = time.time() * 1000
    client.zadd("emq:q:echomq:workers", {"old": now - 700_000, "missed": 700_000 - now, "new": now, "missing": -now})
    register(client, A)
    assert set(registered(client)) == {A, b"new", b"missing"}


def look(client, *queues: str, period: int = 60_000):
    workers = [key(queue, "echomq:workers") for queue in queues or ("q",)]
    return load("lookAtWorkers-1.lua")(client, ["emq:q:look"], [period, *workers])


def test_a_look_shows_those_missing_and_all_others_of_each_queue(client):
    register(client, A, B)
    register(client, B, queue="r")
    note_missing(client, A, ms=1)
    assert look(client, "q", "none", "r") == [0, [A], [B], [], [], [], [B]]


def test_only_one_look_is_made_in_a_period(client):
    register(client, A)
    assert look(client)[0] == 0
    assert 0 < look(client)[0] <= 60_000
    client.persist("emq:q:look")
    assert look(client) == [-1] or look(client)[0] > 0
    assert client.pttl("emq:q:look") > 0


def test_where_nobody_is_registered_a_look_is_one_command_and_writes_nothing(client):
    look(client)
    client.config_resetstat()
    assert look(client, "q", "r") == [-1]
    calls = {name: stats["calls"] for name, stats in client.info("commandstats").items()}
    assert (calls.pop("cmdstat_evalsha"), calls.pop("cmdstat_exists")) == (1, 1)
    assert set(calls) <= {"cmdstat_config|resetstat", "cmdstat_config", "cmdstat_info"}
    assert dump(client) == {}
