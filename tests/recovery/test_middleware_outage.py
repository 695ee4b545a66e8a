from __future__ import annotations

import logging
import time

import pytest
import redis
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import StalledCheckerMiddleware

from ..support.brokers import Recorder, booted, lines, recoverer_of, sweepers
from ..support.queue_data import put, state
from ..support.servers import Server, wait_until


@pytest.fixture(autouse=True)
def all_lines(caplog):
    caplog.set_level(logging.INFO)


@pytest.fixture
def checks_of_server(server):
    if server.process is None:
        server.start()
    client = redis.Redis.from_url(server.url)
    client.flushall()
    return recoverer_of(client, "a", "b", stalled_interval=60_000)


def test_an_outage_is_logged_once_when_it_begins_and_once_when_it_ends(server, checks_of_server, caplog):
    recoverer, recorder = checks_of_server
    recoverer.check("a")
    server.kill()
    for _ in range(3):
        assert recoverer.check("a") is None
        assert recoverer.check("b") is None
    (line,) = lines(caplog)
    assert line.startswith("Stalled jobs of all queues are not recovered for now: ConnectionError: ")
    assert line.endswith("(tried again every 60 s)")

    server.start()
    recoverer.check("a")
    recoverer.check("b")
    assert lines(caplog)[1:] == ["Stalled jobs of all queues are recovered again."]
    assert [queue for queue, _ in recorder.named("check")] == ["a", "a", "b"]


def test_the_next_outage_is_logged_again(server, checks_of_server, caplog):
    recoverer, _ = checks_of_server
    for _ in range(2):
        server.kill()
        recoverer.check("a")
        server.start()
        recoverer.check("a")
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"] * 2


def test_an_outage_ends_as_well_when_the_first_answer_is_a_refusal(server, checks_of_server, caplog):
    recoverer, _ = checks_of_server
    server.kill()
    recoverer.check("a")
    server.start()
    put(recoverer.checker.client, "a", active={"x": 1})
    recoverer.check("a")
    assert [line[:45] for line in lines(caplog)] == [
        "Stalled jobs of all queues are not recovered ",
        "Stalled jobs of all queues are recovered agai",
        "Stalled jobs of queue 'a' are not recovered f",
    ]


def test_a_replica_is_an_outage_of_all_queues(caplog):
    with Server("--replicaof", "127.0.0.1", "1") as replica, redis.Redis.from_url(replica.url) as client:
        recoverer, recorder = recoverer_of(client, "a", "b")
        recoverer.check("a")
        recoverer.check("b")
    (line,) = lines(caplog)
    assert "all queues are not recovered for now: ReadOnlyError" in line
    assert recorder.signals == []


def test_a_server_that_takes_no_writes_is_an_outage_of_all_queues(server, checks_of_server, caplog):
    recoverer, _ = checks_of_server
    client = recoverer.checker.client
    client.config_set("min-replicas-to-write", "1")
    try:
        for queue in ("a", "b", "a"):
            recoverer.check(queue)
        (line,) = lines(caplog)
        assert line.startswith("Stalled jobs of all queues are not recovered for now: ResponseError: ")
        assert "NOREPLICAS" in line
    finally:
        client.config_set("min-replicas-to-write", "0")
    recoverer.check("b")
    assert lines(caplog)[1:] == ["Stalled jobs of all queues are recovered again."]


@pytest.mark.parametrize(
    "error",
    [
        redis.ResponseError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist."),
        redis.ResponseError("BUSY Redis is busy running a script. You can only call SCRIPT KILL."),
        redis.ResponseError("Error running script: @user_script: 1: -MISCONF Redis is configured to save"),
        redis.ResponseError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
        redis.exceptions.MasterDownError("Link with MASTER is down"),
        redis.exceptions.ClusterDownError("The cluster is down"),
    ],
    ids=lambda error: str(error)[:20],
)
def test_what_a_server_says_of_itself_is_logged_once(client, caplog, monkeypatch, error):
    def refuse(*_):
        raise error

    recoverer, _ = recoverer_of(client, "a", "b")
    monkeypatch.setattr(recoverer.checker, "_call", refuse)
    for queue in ("a", "b"):
        recoverer.check(queue)

    assert [line[:45] for line in lines(caplog)] == ["Stalled jobs of all queues are not recovered "]


def test_a_queue_of_the_wrong_type_is_logged_once_and_the_others_are_checked(client, caplog):
    put(client, "bad", active={"x": 1})
    put(client, "good", active=["y"], jobs={"y": {}}, stalled={"y"})
    before = state(client, "bad")
    recoverer, recorder = recoverer_of(client, "bad", "good")
    for _ in range(3):
        recoverer.check("bad")
        recoverer.check("good")
    assert [line for line in lines(caplog) if "bad" in line] == lines(caplog, "ERROR")
    (line,) = lines(caplog, "ERROR")
    assert "emq:bad:active is a zset and should be a list" in line
    assert recorder.named("recovered") == [("good", ("y",))]
    assert state(client, "bad") == before


def test_a_queue_that_was_repaired_is_checked_again_and_said_so(client, caplog):
    put(client, active={"x": 1})
    recoverer, recorder = recoverer_of(client)
    recoverer.check("q")
    client.delete("emq:q:active")
    recoverer.check("q")
    assert lines(caplog)[1:] == ["Stalled jobs of queue 'q' are recovered again."]
    assert recorder.named("check") == [("q", (0, 0))]


def test_queues_of_echomq_2_are_refused_in_one_line_whatever_their_version_says(client, caplog):
    put(client, meta={"version": "echomq:2\nERROR \x1b[31mforged"}, active=["x"], jobs={"x": {}}, stalled={"x"})
    before = state(client)
    recoverer, _ = recoverer_of(client)
    recoverer.check("q")
    recoverer.check("q")
    (line,) = lines(caplog)
    assert "only EchoMQ 1 is understood" in line
    assert line.isprintable()
    assert state(client) == before


def test_an_error_that_nobody_thought_of_is_logged_once_with_its_traceback(client, caplog, monkeypatch):
    recoverer, recorder = recoverer_of(client)
    with monkeypatch.context() as patch:
        patch.setattr(recoverer.checker, "sweep", lambda queue_name: 1 // 0)
        assert recoverer.check("q") is None
        assert recoverer.check("q") is None
    (record,) = caplog.records
    assert "ZeroDivisionError" in record.getMessage()
    assert record.exc_info
    recoverer.check("q")
    assert len(recorder.named("check")) == 1


def test_the_thread_survives_an_outage_at_boot_and_recovers_afterwards(caplog):
    with Server() as server:
        server.kill()
        broker, recorder = StubBroker(), Recorder()
        broker.add_middleware(StalledCheckerMiddleware(url=server.url, stalled_interval=100))
        broker.add_middleware(recorder)
        with booted(broker, "q"):
            wait_until(lambda: lines(caplog, "ERROR"))
            server.start()
            with server.client() as client:
                put(client, active=["a"], jobs={"a": {}})
            wait_until(lambda: recorder.named("recovered") == [("q", ("a",))])
    assert len(lines(caplog, "ERROR")) == 1
    assert sweepers() == []


def test_a_shutdown_during_an_outage_is_quick(caplog):
    broker = StubBroker()
    broker.add_middleware(StalledCheckerMiddleware(url="redis://127.0.0.1:1", stalled_interval=100))
    with booted(broker, "q"):
        wait_until(lambda: lines(caplog, "ERROR"))
        started = time.monotonic()
    assert time.monotonic() - started < 20
    assert sweepers() == []
