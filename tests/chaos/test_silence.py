"""A server that accepts connections and never answers, or answers no more: nothing of ours waits for it for ever."""

from __future__ import annotations

import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dramatiq
import pytest
import redis
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker, LockLost, StalledCheckerMiddleware
from dramatiq_echomq.broker import marker_wait
from dramatiq_echomq.protocol import clients

from ..support.brokers import booted, lines, sweepers
from ..support.faults import Log, quicken, recording_actor, running, settled
from ..support.job_data import JOB, add
from ..support.proxy import LossyProxy, SilentServer
from ..support.queue_data import put, state
from ..support.servers import Server, wait_until


def without_timeout(port: int) -> redis.Redis:
    return redis.Redis(port=port, socket_timeout=None, socket_connect_timeout=None)


@pytest.fixture
def short_timeouts(monkeypatch) -> None:
    monkeypatch.setattr(clients, "SOCKET_TIMEOUT", 0.3)
    monkeypatch.setitem(clients.client_with.__kwdefaults__, "resending", 0.4)


@pytest.mark.at_once(long=True)
def test_a_message_to_a_server_that_never_answers_is_given_up_within_15_s():
    with SilentServer() as silent:
        brokers = [
            EchoMQBroker(url=silent.url, middleware=[]),
            EchoMQBroker(host="127.0.0.1", port=silent.port, middleware=[]),
            EchoMQBroker(client=redis.Redis(port=silent.port), middleware=[]),
            EchoMQBroker(client=redis.Redis.from_url(silent.url), middleware=[]),
            EchoMQBroker(client=without_timeout(silent.port), middleware=[]),
        ]

        def seconds_until_given_up(broker: EchoMQBroker) -> float:
            started = time.monotonic()
            with pytest.raises(redis.TimeoutError):
                add(broker)
            return time.monotonic() - started

        with ThreadPoolExecutor(len(brokers)) as threads:
            taken = list(threads.map(seconds_until_given_up, brokers))
    assert max(taken) < 20  # of which 5 s are for a machine that stands still


@pytest.mark.parametrize("timeout", [0.05, 0.3, 7, 60])
def test_a_timeout_of_the_users_own_is_kept(caplog, timeout):
    given = redis.Redis(socket_timeout=timeout)

    broker = EchoMQBroker(client=given, middleware=[])

    assert broker.connections.commands.connection_pool.connection_kwargs["socket_timeout"] == timeout
    assert not lines(caplog, "WARNING")


def test_a_client_without_a_timeout_is_told_once_whoever_gets_it(client, redis_url, caplog):
    given = redis.Redis.from_url(redis_url, socket_timeout=None)
    for _ in range(2):
        EchoMQBroker(client=given, middleware=[])
        with booted(StubBroker(middleware=[StalledCheckerMiddleware(client=given)]), "q"):
            pass

    [line] = lines(caplog, "WARNING")
    assert "The Redis client of EchoMQBroker has no socket_timeout" in line
    assert "socket_timeout=5" in line


def test_no_connection_that_a_worker_uses_is_without_a_timeout(client, redis_url):
    broker = EchoMQBroker(client=redis.Redis.from_url(redis_url, socket_timeout=None), middleware=[])
    broker.add_middleware(StalledCheckerMiddleware())
    opened: list[float | None] = []
    connect = redis.Connection.connect

    def noted(connection):
        opened.append(connection.socket_timeout)
        connect(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis.Connection, "connect", noted)
        recording_actor(broker, Log())
        with running(broker):
            add(broker, 0)
            broker.locks.renew()
            wait_until(settled(broker, 1))
            assert sweepers()
    assert opened
    assert None not in opened


def test_a_worker_goes_on_after_a_second_of_lost_replies(client, monkeypatch, short_timeouts):
    """With a client that has no timeout, which redis-py up to 7 makes."""
    quicken(monkeypatch)
    with Server() as server, server.client() as direct, LossyProxy(server.port) as proxy:
        broker, log = EchoMQBroker(client=without_timeout(proxy.port), middleware=[], lock_duration=8_000), Log()
        recording_actor(broker, log)
        with running(broker, threads=4):
            add(broker, "first")
            wait_until(settled(broker, 1))
            log.gate.clear()
            for number in range(20):
                add(broker, number)
            wait_until(lambda: direct.llen("emq:q:active") >= 4)
            proxy.silent.set()
            log.gate.set()
            silent_since = time.monotonic()
            wait_until(lambda: time.monotonic() - silent_since > 1)
            proxy.silent.clear()
            wait_until(lambda: direct.zcard("emq:q:completed") == 21)
        assert sorted(log.ran, key=str) == sorted([*range(20), "first"], key=str)
        assert not state(direct)["locks"]


def test_the_sweeper_gives_a_silent_server_up_and_goes_on_when_it_answers(caplog, short_timeouts):
    with Server() as server, server.client() as direct, LossyProxy(server.port) as proxy:
        put(direct, active=["a"], jobs={"a": JOB})
        proxy.silent.set()
        middleware = StalledCheckerMiddleware(client=without_timeout(proxy.port), stalled_interval=100)
        with booted(StubBroker(middleware=[middleware]), "q"):
            wait_until(lambda: any("not recovered for now" in line for line in lines(caplog, "ERROR")))
            proxy.silent.clear()
            wait_until(lambda: direct.lrange("emq:q:wait", 0, -1) == [b"a"])


@pytest.mark.parametrize("how", ["actor", "job"])
def test_a_job_is_lost_behind_a_silent_network_before_another_worker_starts_it(how, monkeypatch):
    """Its lock is much shorter than those of the broker."""
    quicken(monkeypatch)
    monkeypatch.setattr(marker_wait, "LONGEST_BLOCK", 1.0)  # the silent consumer may get the marker of the job
    moments: dict[str, float] = {}

    def work(broker_name: str) -> None:
        try:
            moments.setdefault(f"{broker_name} starts", time.monotonic())
            while broker_name == "first":
                time.sleep(0.001)
        except LockLost:
            moments["lost"] = time.monotonic()
            raise

    with Server() as server, server.client() as direct, LossyProxy(server.port) as proxy:
        first, second = EchoMQBroker(port=proxy.port, middleware=[]), EchoMQBroker(client=direct, middleware=[])
        for broker, name in ((first, "first"), (second, "second")):
            options = {"lock_duration": 1_000} if how == "actor" else {}
            dramatiq.actor(
                functools.partial(work, name),
                broker=broker,
                actor_name="work",
                queue_name="q",
                **options,
            )
        second.add_middleware(StalledCheckerMiddleware(stalled_interval=400))
        if how == "actor":
            add(second)
        else:
            put(
                direct,
                wait=["a"],
                jobs={"a": {"name": "work", "data": '{"args": []}', "opts": '{"lockDuration": 1000}'}},
            )
        with running(first):
            wait_until(lambda: "first starts" in moments)
            time.sleep(0.6)  # so that the lock was renewed at least once
            proxy.silent.set()
            with running(second):
                wait_until(lambda: "second starts" in moments)
            assert moments["lost"] < moments["second starts"]
            proxy.silent.clear()


def test_a_wrong_password_is_told_at_once():
    with Server("--requirepass", "right") as server:
        broker = EchoMQBroker(port=server.port, password="wrong", middleware=[])
        started = time.monotonic()
        with pytest.raises(redis.AuthenticationError):
            add(broker)
    assert time.monotonic() - started < 5  # what may pass is tried again for longer


def test_a_server_that_is_gone_for_a_moment_is_asked_again():
    with Server() as server:
        broker = EchoMQBroker(url=server.url, middleware=[])
        add(broker)
        server.kill()
        restart = threading.Timer(0.5, server.start)
        restart.start()
        add(broker)
        restart.join()
        broker.close()
