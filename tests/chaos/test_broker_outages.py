"""Workers whose Redis really goes away, changes its mind, or is slow."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware
from dramatiq_echomq.protocol.scripts import load

from ..support.faults import Log, quicken, recording_actor, running, settled
from ..support.job_data import add, id_of
from ..support.proxy import LossyProxy, Switch
from ..support.queue_data import state
from ..support.servers import KEEPS_DATA, Server, wait_until

TIMEOUTS = {"socket_timeout": 1, "socket_connect_timeout": 1}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    quicken(monkeypatch)


@pytest.fixture
def server():
    with Server(*KEEPS_DATA, "--repl-diskless-sync-delay", "0") as server:
        yield server


def test_a_worker_goes_on_when_redis_was_killed_and_comes_back(server):
    broker, log = EchoMQBroker(url=server.url, middleware=[], **TIMEOUTS), Log()
    recording_actor(broker, log)
    log.gate.clear()
    for number in range(10):
        add(broker, number)
    add(broker, 10, delay=500)
    with running(broker) as worker:
        wait_until(lambda: len(log.started) == 2)  # not before: the reply to their fetch may still be on its way
        threads = dict(worker.consumers)
        server.kill()
        log.gate.set()
        wait_until(lambda: len(log.ran) >= 2)
        server.start()
        wait_until(settled(broker, 11))
        assert worker.consumers == threads
    assert sorted(log.ran) == list(range(11))


@pytest.mark.parametrize("drops_connections", [True, False])
def test_a_worker_follows_a_failover_to_a_replica(server, monkeypatch, drops_connections):
    with (
        Server("--replicaof", "127.0.0.1", str(server.port)) as replica,
        Switch(server.port) as switch,
        server.client() as old,
        replica.client() as new,
    ):
        broker, log = EchoMQBroker(port=switch.port, middleware=[], **TIMEOUTS), Log()
        recording_actor(broker, log)
        with running(broker):
            add(broker, 0)
            wait_until(settled(broker, 1))
            log.gate.clear()
            for number in range(1, 8):
                add(broker, number)
            wait_until(lambda: old.llen("emq:q:active") >= 2)
            wait_until(lambda: (new.llen("emq:q:wait"), new.llen("emq:q:active")) == (5, 2))
            switch.to(replica.port, drop=drops_connections)
            new.replicaof("NO", "ONE")
            old.replicaof("127.0.0.1", replica.port)
            log.gate.set()
            wait_until(lambda: new.zcard("emq:q:completed") == 8)
            log.gate.clear()
            job_id = id_of(add(broker, 8))
            wait_until(lambda: new.hget(f"emq:q:{job_id}", "ats"))
            log.gate.set()
            wait_until(settled(broker, 9))
        assert sorted(log.ran) == list(range(9))
        assert not state(new)["locks"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("script", ["addJobs-1.lua", "finishAndFetch-1.lua"])
def test_a_reply_that_is_lost_on_its_way_repeats_nothing_and_loses_nothing(client, server, script, times):
    with server.client() as direct, LossyProxy(server.port) as proxy:
        broker, log = EchoMQBroker(host="127.0.0.1", port=proxy.port, middleware=[]), Log()
        recording_actor(broker, log)
        for name in ("addJobs-1.lua", "finishAndFetch-1.lua", "requeueJobs-1.lua"):
            direct.script_load(load(name).text)
        proxy.lose(*[load(script).sha.encode()] * times)
        for number in range(6):
            add(broker, number)
        with running(broker):
            wait_until(settled(broker, 6))
            assert len(proxy.lost) == times
        assert sorted(log.ran) == list(range(6))
        assert {each["ats"] for name, each in state(direct).items() if len(name) == 36} == {"1"}


def test_a_worker_goes_on_while_its_connections_are_cut_and_its_scripts_dropped(server):
    broker, log = EchoMQBroker(url=server.url, middleware=[], **TIMEOUTS), Log()
    recording_actor(broker, log)
    cutting = threading.Event()

    def cut() -> None:
        pause = 0.02
        with server.client() as direct:
            while not cutting.wait(pause):
                pause *= 1.02  # a slow machine gets on in the end
                direct.script_flush()
                direct.client_kill_filter(_type="normal", skipme=True)

    cutter = threading.Thread(target=cut)
    for number in range(100):
        add(broker, number)
    with server.client(retry=None) as direct, running(broker, threads=4):
        cutter.start()
        try:
            wait_until(lambda: len(set(log.ran)) == 100, timeout=30)
        finally:
            cutting.set()
            cutter.join(20)
        wait_until(settled(broker, 100))
        assert not [name for name in direct.keys("emq:q:*") if name.endswith(b":lock")]
    assert sorted(log.ran) == list(range(100))


def test_a_worker_goes_on_after_everything_was_flushed(server):
    broker, log = EchoMQBroker(url=server.url, middleware=[], lock_duration=1_000), Log()
    recording_actor(broker, log)
    log.gate.clear()
    for number in range(6):
        add(broker, number)
    with server.client() as direct, running(broker) as worker:
        wait_until(lambda: len(log.started) == 2)
        direct.flushall()
        wait_until(lambda: not broker.in_flight.all())
        log.gate.set()
        add(broker, 6)
        wait_until(settled(broker, 1))
        assert 6 in log.ran
        assert not {2, 3} & set(log.ran)
        assert all(thread.is_alive() for thread in worker.consumers.values())


def test_a_redis_that_is_blocked_for_longer_than_a_lock_makes_nothing_run_twice(server):
    """The locks end meanwhile, but their owner comes back before anyone recovers the jobs."""
    broker, log = EchoMQBroker(url=server.url, middleware=[], lock_duration=1_000, **TIMEOUTS), Log()
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=2_500))
    recording_actor(broker, log)
    log.gate.clear()
    for number in range(6):
        add(broker, number)
    with server.client() as direct, running(broker):
        wait_until(lambda: direct.llen("emq:q:active") == 2)
        server.process.send_signal(signal.SIGSTOP)
        frozen_at = time.monotonic()
        log.gate.set()
        wait_until(lambda: time.monotonic() - frozen_at > 1.6)
        server.process.send_signal(signal.SIGCONT)
        wait_until(settled(broker, 6))
    assert sorted(log.ran) == list(range(6))
