"""What the ``dramatiq`` command runs in tests of the broker: an EchoMQBroker with the middleware. What its
processes do they note in another Redis, since that of the broker is under test.
"""

from __future__ import annotations

import os
import signal
import time

import dramatiq.worker
import redis
from dramatiq.middleware.prometheus import Prometheus

from dramatiq_echomq import EchoMQBroker, LockLost, StalledCheckerMiddleware
from dramatiq_echomq.prometheus import StalledMetrics

dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS = 0.2
notes = redis.Redis.from_url(os.environ["APP_NOTES_URL"])


class Pids(dramatiq.Middleware):
    def after_worker_boot(self, broker, worker):
        notes.hset("pids", os.getsid(0), os.getpid())


broker = EchoMQBroker(url=os.environ["APP_URL"])
broker.add_middleware(StalledCheckerMiddleware())
if "APP_METRICS" in os.environ:
    broker.add_middleware(Prometheus())
    broker.add_middleware(StalledMetrics())
broker.add_middleware(Pids())
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="q", max_retries=0)
def work(number: int, ms: float = 0) -> None:
    notes.rpush("started", number)
    time.sleep(ms / 1000)
    notes.rpush("ran", number)


@dramatiq.actor(queue_name="q", max_retries=0)
def poison() -> None:
    notes.rpush("poisoned", os.getpid())
    os.kill(os.getpid(), signal.SIGKILL)


@dramatiq.actor(queue_name="q", max_retries=0)
def hold() -> str:
    """Runs until it is released."""
    me = os.getpid()
    notes.rpush("started", me)
    try:
        while not notes.exists("released"):
            time.sleep(0.01)
    except LockLost:
        notes.rpush("lost", me)
        raise
    notes.rpush("ran", me)
    return "held"


@dramatiq.actor(queue_name="q", max_retries=0)
def stubborn() -> str:
    """Like hold, but it ends as if nothing was when it is interrupted."""
    try:
        return hold.fn()
    except LockLost:
        notes.rpush("ran", os.getpid())
        return "stubborn"


@dramatiq.actor(queue_name="q", max_retries=0)
def outlive(number: int) -> None:
    """The first run lasts until its process is killed, each later one ends at once."""
    runs = notes.hincrby("runs", number, 1)
    notes.rpush("starts", f"{number} {time.time()} {os.getpid()}")
    while runs == 1:
        time.sleep(0.05)
