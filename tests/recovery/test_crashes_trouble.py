"""Crashed workers are found although Redis, a queue or a registration is in trouble."""

from __future__ import annotations

import math
import time

import pytest
import redis

from dramatiq_echomq.protocol.scripts import Script
from dramatiq_echomq.recovery import crashes

from ..support.acl import all_but
from ..support.brokers import lines, recoverer_of
from ..support.queue_data import put, state
from ..support.servers import Server
from ..support.worker_data import closed, lock, register, registered, registration


@pytest.mark.parametrize("fault", [redis.ConnectionError("gone"), redis.TimeoutError("late"), OSError("no route")])
def test_an_outage_stops_no_watch(client, worker, watch, monkeypatch, caplog, fault):
    own, _ = worker("a", "1")
    look, recorder = watch()
    closed(client, own)
    execute = Script.__call__

    def failing(script, *args):
        raise fault

    look()
    time.sleep(0.12)
    monkeypatch.setattr(Script, "__call__", failing)
    assert look() == crashes.PERIOD
    monkeypatch.setattr(Script, "__call__", execute)
    look()
    assert recorder.named("recovered") == [("q", ("1",))]
    assert not lines(caplog, "ERROR", "CRITICAL")


def test_a_check_that_cannot_be_made_is_made_by_who_looks_after_the_grace(client, worker, monkeypatch):
    own, text = worker("a", "1")
    recoverer, _ = recoverer_of(client, crash_grace=100)
    closed(client, own)
    monkeypatch.setattr(crashes, "THROTTLE", 1)
    recoverer.crashes.look()
    time.sleep(0.12)
    with monkeypatch.context() as patched:
        patched.setattr(recoverer.crashes, "check", lambda queue_name: False)
        recoverer.crashes.look()
    assert registered(client) == {text: "missing"}
    time.sleep(0.12)
    recoverer_of(client, crash_grace=100)[0].crashes.look()
    assert registered(client) == {}
    assert state(client)["wait"] == ["1"]


def test_one_queue_that_is_refused_stops_no_other(client, worker, watch):
    own, text = worker("a", "1")
    register(client, text, queue="bad")
    client.set("emq:bad:active", "no list")
    look, recorder = watch("bad", "q")
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    assert recorder.named("recovered") == [("q", ("1",))]


def test_what_is_no_registration_is_left_alone(client, worker, watch):
    own, _ = worker("a", "1")
    odd = [b"", b"\xff\xfe", b"a b", b"a -1 run x", b"a 1e3 run x", "a ² run x".encode()]
    client.zadd("emq:q:echomq:workers", dict.fromkeys(odd, 1))
    look, recorder = watch()
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    assert recorder.named("recovered") == [("q", ("1",))]
    assert set(registered(client)) == set(odd)


@pytest.mark.parametrize("command", ["client|list", "info"])
def test_without_the_right_it_is_off_and_says_so_once(client, caplog, command):
    caplog.set_level("INFO")
    with Server() as server, server.client() as admin:
        rights = [*all_but(command), "~*", "&*"]
        admin.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">secret", *rights)
        text = registration("a", 10**9, admin.info("server")["run_id"])
        register(admin, text)
        with server.client(username="worker", password="secret") as limited:
            recoverer, _ = recoverer_of(limited)
            assert recoverer.crashes.look() == math.inf
    [line] = lines(caplog)
    assert line.startswith("Crashed workers are not looked for, their jobs come back once their locks have ended: ")
    assert command.split("|")[0] in line


def test_it_works_when_redis_is_at_its_maxmemory():
    with Server() as server, server.client() as direct:
        text = registration("dead", 10**9, direct.info("server")["run_id"])
        put(direct, active=["1"], jobs={"1": {}})
        lock(direct, "dead", "1")
        register(direct, text)
        direct.config_set("maxmemory", 1)
        register(direct, registration("late"))
        recoverer, recorder = recoverer_of(direct, crash_grace=100)
        recoverer.crashes.look()
        direct.delete(*direct.keys("emq:*:look:*"))
        time.sleep(0.12)
        recoverer.crashes.look()
        assert recorder.named("recovered") == [("q", ("1",))]
        assert registered(direct) == {registration("late"): "there"}
