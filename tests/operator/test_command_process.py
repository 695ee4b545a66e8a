"""The command in processes of its own: the checker that runs until it is told to stop, and a look again and again."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import redis

from dramatiq_echomq import QueueRefused, ServerTooOld, Settings
from dramatiq_echomq.cli.run import Sweeps
from dramatiq_echomq.cli.session import Session

from ..support.environment import ENVIRONMENT
from ..support.queue_data import put
from ..support.servers import Server, wait_until
from ..support.worker_data import closed, connected, lock, register, registered, registration

JOBS = {"a": {}, "b": {}}


@contextlib.contextmanager
def started(*words: str, url: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "dramatiq_echomq", *words, "--url", url]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**ENVIRONMENT, "PYTHONUNBUFFERED": "1", **environment}, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def client_of(server: Server) -> redis.Redis:
    return redis.Redis.from_url(server.url)


@pytest.mark.at_once
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_checker_of_its_own_brings_jobs_back_until_it_is_told_to_stop(ending):
    with Server() as server, client_of(server) as client:
        put(client, active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
        with started("run", "--stalled-interval", "100", "--json", url=server.url) as process:
            marked, recovered = (json.loads(process.stdout.readline()) for _ in range(2))
            process.send_signal(ending)
            _, complaints = process.communicate(timeout=20)

            assert process.returncode == 0
            assert (marked["queue_name"], marked["marked"], marked["recovered_ids"]) == ("q", 1, [])
            assert recovered["recovered_ids"] == ["a"]
            assert "Checking all queues under emq every 0.1 s" in complaints
            assert complaints.splitlines()[-1].endswith("stopped")
        assert client.lrange("emq:q:wait", 0, -1) == [b"a"]


@pytest.mark.at_once
def test_a_checker_waits_for_a_queue_and_for_redis_and_creates_nothing():
    with Server() as server, client_of(server) as client:
        put(client, "images", wait=["x"], jobs={"x": {}}, meta={"version": "echomq:1"})
        with started("run", "imagse", "--stalled-interval", "100", url=server.url) as process:
            assert "Checking imagse" in process.stderr.readline()
            assert "imagse cannot be checked for now: there is no queue 'imagse'" in process.stderr.readline()
            assert not client.keys("emq:imagse:*")
            put(client, "imagse", active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
            assert "imagse can be checked again" in process.stderr.readline()
            assert "imagse: 1 without a lock marked" in process.stdout.readline()
            assert "imagse: 1 brought back ('a')" in process.stdout.readline()
            server.kill()
            assert "imagse cannot be checked for now: ConnectionError" in process.stderr.readline()
            process.terminate()
            assert process.wait(20) == 0


@pytest.mark.at_once
def test_a_report_only_checker_says_what_it_would_do():
    with Server() as server, client_of(server) as client:
        put(client, active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
        with started("run", "q", "--report-only", "--stalled-interval", "100", url=server.url) as process:
            assert "q: would be: 1 without a lock marked" in process.stdout.readline()
            assert "q: would be: 1 brought back ('a')" in process.stdout.readline()
        assert client.lrange("emq:q:active", 0, -1) == [b"a"]


@pytest.mark.at_once
def test_a_checker_brings_the_jobs_of_a_killed_worker_back_long_before_their_locks_end():
    with Server() as server, client_of(server) as client:
        put(client, active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
        lock(client, "w1", "a")
        own, _ = connected(server.url, client, "w1")
        closed(client, own)
        with started("run", "--json", url=server.url, DRAMATIQ_ECHOMQ_CRASH_GRACE="99") as process:
            assert "all queues under emq every 30 s" in process.stderr.readline()
            assert "CRASH_GRACE) is 99 ms, which is very short." in process.stderr.readline()
            assert "Worker host:w1 is gone, its connection to Redis has closed. 1 job" in process.stderr.readline()
            assert json.loads(process.stdout.readline())["recovered_ids"] == ["a"]
            wait_until(lambda: registered(client) == {})
        assert client.lrange("emq:q:wait", 0, -1) == [b"a"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ServerTooOld("6.0.16", "localhost:6379"),
            "the Redis at localhost:6379 is version 6.0.16: dramatiq-echomq needs",
        ),
        (QueueRefused("found a string under emq:q:wait"), "the script found a string under emq:q:wait"),
        (redis.TimeoutError("late"), "TimeoutError: late"),
        (ValueError("nobody thought of it"), "ValueError: nobody thought of it"),
    ],
    ids=["old", "refused", "silent", "unexpected"],
)
def test_a_checker_says_once_what_keeps_it_from_a_check_and_goes_on(client, capsys, monkeypatch, error, expected):
    def fail(*_):
        raise error

    put(client, wait=["x"], jobs={"x": {}}, meta={"version": "echomq:1"})
    sweeps = Sweeps(Session(client, Settings(), False), ["q"])
    with monkeypatch.context() as patched:
        patched.setattr("dramatiq_echomq.recovery.checker.StalledChecker._call", fail)
        assert [sweeps.check("q"), sweeps.check_now("q"), sweeps.check("q")] == [None, False, None]
    sweeps.check("q")
    trouble, ended = capsys.readouterr().err.splitlines()
    assert f" q cannot be checked for now: {expected}" in trouble
    assert ended.endswith(" q can be checked again")


def test_a_checker_prints_lines_of_text_whatever_a_queue_is_called(client, capsys):
    name = "q\x1b[2J\n\udcff"
    put(client, name, active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
    sweeps = Sweeps(Session(client, Settings(), False), [name])
    sweeps.announce()
    sweeps.check(name)

    said = capsys.readouterr()
    for line, expected in zip((said.out + said.err).splitlines(), ("1 without a lock", "Checking"), strict=True):
        assert expected in line
        assert line.isprintable()


@pytest.mark.parametrize("settings", [{"report_only": True}, {"crash_detection": False}])
def test_a_checker_that_is_not_to_look_for_crashes_does_not(client, settings):
    assert Sweeps(Session(client, Settings(), False), ()).looks_for_crashes
    assert not Sweeps(Session(client, Settings(**settings), False), ()).looks_for_crashes


@pytest.mark.at_once
def test_a_checker_says_once_that_it_may_not_look_for_crashes():
    with Server() as server, client_of(server) as client:
        put(client, active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
        register(client, registration("w1"))
        rights = ["+@all", "-client", "-info"]
        client.acl_setuser("checker", enabled=True, nopass=True, keys=["*"], commands=rights)
        url = server.url.replace("://", "://checker:x@")
        with started("run", "q", url=url) as process:
            assert "Checking q" in process.stderr.readline()
            assert "Crashed workers are not looked for" in process.stderr.readline()
            process.terminate()
            assert "stopped" in process.stderr.readline()


@pytest.mark.at_once
def test_status_is_watched_until_it_is_interrupted():
    with Server() as server, client_of(server) as client:
        put(client, wait=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
        with started("status", "--watch", "--interval", "0.1", "--json", url=server.url) as process:
            assert json.loads(process.stdout.readline())[0]["paused"] is False
            client.hset("emq:q:meta", "paused", "1")
            wait_until(lambda: json.loads(process.stdout.readline())[0]["paused"])
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


@pytest.mark.at_once
def test_a_reader_that_is_gone_is_no_error():
    with Server() as server, client_of(server) as client:
        put(client, wait=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
        with started("status", "--watch", "--interval", "0.1", "--json", url=server.url) as process:
            process.stdout.readline()
            process.stdout.close()
            assert process.wait(20) == 1
            assert process.stderr.read() == ""
