from __future__ import annotations

import os
import random
import time

import pytest
import redis

from dramatiq_echomq import EchoMQBroker

from ..support.fleet import Fleet, two_servers
from ..support.job_data import id_of, message
from ..support.servers import KEEPS_DATA, wait_until

pytestmark = pytest.mark.at_once
FULL = os.environ.get("ECHOMQ_FULL") == "1"
THREADS = 8


def is_done(direct: redis.Redis, finished: int) -> bool:
    try:
        return direct.zcard("emq:q:completed") + direct.zcard("emq:q:failed") >= finished
    except redis.RedisError:
        return False


def left_over(direct: redis.Redis) -> list[bytes]:
    """The keys of the queue that it should not have once it has run empty."""
    unfinished = ("wait", "paused", "active", "delayed", "prioritized", "stalled", "failed")
    return [*direct.keys("emq:q:*:lock"), *(name for state in unfinished for name in direct.keys(f"emq:q:{state}"))]


@pytest.mark.timeout(400)
def test_every_message_runs_though_workers_and_redis_are_killed():
    with two_servers(*KEEPS_DATA) as (server, direct, notes):
        kills, batch, pace = (15, 100, 2.0) if FULL else (3, 100, 1.2)
        messages = kills * batch
        settings = {"lock_duration": 5000, "stalled_interval": 500, "keep_completed": 10_000}
        settings["max_stalled_count"] = int(os.environ.get("ECHOMQ_MAX_STALLED", "10"))
        chance = random.Random(os.environ.get("ECHOMQ_SEED", "7"))
        broker = EchoMQBroker(url=server.url)
        with Fleet(server.url, notes, size=3, threads=THREADS, **settings) as fleet:
            for kill in range(kills):
                ends = time.monotonic() + pace
                for number in range(kill * batch, (kill + 1) * batch):
                    delay = chance.randint(100, 3000) if number % 5 == 4 else None
                    broker.enqueue(message(number, chance.uniform(15, 45)), delay=delay)
                if kill == kills // 2:
                    server.kill()
                    server.start()
                else:
                    wait_until(lambda: fleet.kill_one(chance))
                time.sleep(max(ends - time.monotonic(), 0))
            wait_until(lambda: is_done(direct, messages), timeout=150)
        assert not left_over(direct)
        ran = [int(number) for number in notes.lrange("ran", 0, -1)]
        starts = notes.llen("started")
        completed = direct.zrange("emq:q:completed", 0, -1)
        stalls = [int(direct.hget(b"emq:q:" + job_id, "stc") or 0) for job_id in completed]
        print(
            f"{kills} kills, {len(ran) - messages} ran twice, {starts - messages} started again, {sum(stalls)} stalls"
        )
        assert set(ran) == set(range(messages))
        assert len(completed) == messages
        assert starts - messages <= THREADS * kills
        assert sum(stalls) <= THREADS * kills


@pytest.mark.parametrize("at", [0, 40])
def test_a_poison_job_is_failed_after_two_runs_and_all_others_complete(at):
    with two_servers(*KEEPS_DATA) as (server, direct, notes):
        broker = EchoMQBroker(url=server.url)
        broker.pause("q")
        for number in range(100):
            if number == at:
                poison = broker.enqueue(message(actor="poison"))
            broker.enqueue(message(number, 30))
        # No lock ends by itself on a slow machine, and that of a worker that died before it was registered does soon.
        settings = {"lock_duration": 10_000, "crash_grace": 1_000, "stalled_interval": 300, "max_stalled_count": 1}
        with Fleet(server.url, notes, size=1, threads=THREADS, **settings):
            broker.resume("q")
            wait_until(lambda: is_done(direct, 101), timeout=120)
        assert notes.llen("poisoned") == 2
        assert direct.zrange("emq:q:failed", 0, -1) == [id_of(poison).encode()]
        assert direct.zcard("emq:q:completed") == 100
        assert {int(number) for number in notes.lrange("ran", 0, -1)} == set(range(100))
        assert left_over(direct) == [b"emq:q:failed"]
