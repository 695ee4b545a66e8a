"""Workers that are alive, whatever befalls their connections: their jobs run once and are charged nothing."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Iterator

import dramatiq
import pytest
import redis

from dramatiq_echomq import EchoMQBroker, LockLost, StalledCheckerMiddleware

from ..support.brokers import working
from ..support.fleet import Fleet, two_servers
from ..support.job_data import id_of, message
from ..support.proxy import LossyProxy
from ..support.sentinel import NAME, kill_in_step, port_of_master, sentinel_of_two
from ..support.servers import KEEPS_DATA, Server, wait_until

pytestmark = pytest.mark.at_once(long=True)
FULL = os.environ.get("ECHOMQ_FULL") == "1"


def await_completion(direct: redis.Redis, notes: redis.Redis, jobs: int) -> None:
    """Let the jobs that are held end, and see that each ran once."""
    assert notes.llen("started") == jobs
    notes.set("released", 1)
    wait_until(lambda: direct.zcard("emq:q:completed") == jobs, timeout=60)
    assert_untouched(direct)
    assert notes.llen("ran") == notes.llen("started") == jobs


def assert_untouched(direct: redis.Redis) -> None:
    for job_id in direct.zrange("emq:q:completed", 0, -1):
        assert direct.hmget(b"emq:q:" + job_id, "ats", "stc") == [b"1", None]


@contextlib.contextmanager
def held_jobs(*options: str, jobs: int = 4) -> Iterator[tuple[Server, redis.Redis, redis.Redis, Fleet]]:
    """Two workers, all settings at their defaults, with jobs that are held."""
    with two_servers(*options) as (server, direct, notes):
        broker = EchoMQBroker(url=server.url)
        for _ in range(jobs):
            broker.enqueue(message(actor="hold"))
        with Fleet(server.url, notes, size=2, threads=4) as fleet:
            wait_until(lambda: notes.llen("started") == jobs, timeout=60)
            wait_until(lambda: direct.zcard("emq:q:echomq:workers") == 2, timeout=60)
            yield server, direct, notes, fleet
            assert "is gone" not in fleet.log()
        broker.close()


@pytest.mark.timeout(400)
def test_nobody_runs_the_jobs_of_a_worker_that_is_frozen_for_less_than_its_locks_last():
    with held_jobs() as (_, direct, notes, fleet):
        frozen = fleet.pids()
        for pid in frozen[:1]:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(20 if FULL else 7)
        for pid in frozen[:1]:
            os.kill(pid, signal.SIGCONT)
        await_completion(direct, notes, 4)


@pytest.mark.timeout(400)
def test_all_connections_may_be_killed_again_and_again():
    with held_jobs() as (_, direct, notes, _fleet):
        ends = time.monotonic() + (60 if FULL else 9)
        while time.monotonic() < ends:
            direct.execute_command("CLIENT", "KILL", "TYPE", "normal")
            time.sleep(2)
        await_completion(direct, notes, 4)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("away", [0.0, 5.0])
def test_redis_may_restart(away):
    with held_jobs(*KEEPS_DATA) as (server, direct, notes, _fleet):
        server.kill()
        time.sleep(away)
        server.start()
        wait_until(lambda: newly_registered(direct) == 2, timeout=60)
        time.sleep(5)  # two looks and a grace, had they been taken for gone
        await_completion(direct, notes, 4)


def newly_registered(direct: redis.Redis) -> int:
    with contextlib.suppress(redis.RedisError):
        run_id = direct.info("server")["run_id"].encode()
        return sum(run_id in text for text in direct.zrange("emq:q:echomq:workers", 0, -1))
    return 0


@pytest.mark.timeout(400)
def test_sentinel_may_make_a_replica_the_master():
    with sentinel_of_two() as (master, sentinel):
        released, ran = threading.Event(), []

        def work(number: int) -> None:
            ran.append(number)
            released.wait(200)

        # A Sentinel that has stood still for 2 s does nothing for the next 30.
        master_for = functools.partial(sentinel.master_for, NAME, socket_timeout=2)
        brokers = [EchoMQBroker(client=master_for(), middleware=[], lock_duration=180_000) for _ in range(2)]
        for broker in brokers:
            broker.add_middleware(StalledCheckerMiddleware())
            dramatiq.actor(work, broker=broker, actor_name="work", queue_name="q")
        for number in range(4):
            brokers[0].enqueue(message(number))
        with (
            working(brokers[0], worker_threads=4),
            working(brokers[1], worker_threads=4),
            contextlib.ExitStack() as ending,
        ):
            ending.callback(released.set)
            wait_until(lambda: len(ran) == 4)
            kill_in_step(master)
            wait_until(lambda: port_of_master(sentinel) not in (0, master.port), timeout=90)
            direct = master_for()
            wait_until(lambda: newly_registered(direct) == 2, timeout=60)
            time.sleep(5)
            released.set()
            wait_until(lambda: direct.zcard("emq:q:completed") == 4, timeout=40)
        assert sorted(ran) == list(range(4))
        assert_untouched(direct)
        for broker in brokers:
            broker.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "silent"])
def test_a_worker_that_is_cut_off_for_longer_than_the_grace_is_fenced(is_closed):
    """By a proxy that says nothing: its server's side closes, which is seen long before the lock would end, or does
    not, and the lock ends.
    """
    with Server() as server, server.client() as direct, LossyProxy(server.port) as proxy:
        started = threading.Event()
        ends: dict[str, list] = {"cut off": [], "other": []}

        def worker(name: str, port: int) -> EchoMQBroker:
            lock_duration = 30_000 if is_closed else 3_000
            broker = EchoMQBroker(
                host="127.0.0.1", port=port, socket_timeout=1, middleware=[], lock_duration=lock_duration
            )
            if name == "other":
                broker.add_middleware(StalledCheckerMiddleware(stalled_interval=1_000))

            def work() -> None:
                try:
                    started.set()
                    while name == "cut off":
                        time.sleep(0.02)
                    ends[name].append("completed")
                except LockLost:
                    ends[name].append("lost")
                    raise

            dramatiq.actor(work, broker=broker, actor_name="work", queue_name="q")
            return broker

        first, other = worker("cut off", proxy.port), worker("other", server.port)
        job_id = id_of(first.enqueue(message()))
        with working(first):
            assert started.wait(60)
            wait_until(lambda: direct.zcard("emq:q:echomq:workers") == 1, timeout=60)
            with working(other):
                proxy.silent.set()
                if is_closed:
                    direct.execute_command("CLIENT", "KILL", "TYPE", "normal")
                wait_until(lambda: direct.zscore("emq:q:completed", job_id), timeout=60)
                proxy.silent.clear()
                wait_until(lambda: ends["cut off"], timeout=60)
        first.close()
        other.close()
        assert ends == {"cut off": ["lost"], "other": ["completed"]}
        assert direct.hmget(f"emq:q:{job_id}", "ats", "stc") == [b"2", b"1"]
