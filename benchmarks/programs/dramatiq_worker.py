"""What the ``dramatiq`` command runs in ``benchmarks/recovery.py``: a broker with nothing but its defaults."""

from __future__ import annotations

import os
import time

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

url, notes = os.environ["BENCH_URL"], redis.Redis.from_url(os.environ["BENCH_NOTES_URL"])
if os.environ["BENCH_SYSTEM"] == "RedisBroker":
    broker: dramatiq.Broker = RedisBroker(url=url)
else:
    broker = EchoMQBroker(url=url)
    broker.add_middleware(StalledCheckerMiddleware())
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="q")
def outlive(number: int) -> None:
    """The first run lasts until its process is killed, each later one ends at once."""
    runs = notes.hincrby("runs", number, 1)
    notes.rpush("starts", f"{number} {time.time()} {os.getpid()}")
    while runs == 1:
        time.sleep(0.05)


@dramatiq.actor(queue_name="q")
def load() -> None:
    notes.incr("load")
