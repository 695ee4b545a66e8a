"""What the ``dramatiq`` command runs in tests: a stock RedisBroker with the middleware. It keeps in
Redis what its processes did: their pids under ``pids``, the signals of checks under ``signals``.
"""

from __future__ import annotations

import json
import os
import time

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import StalledCheckerMiddleware, StalledSignals

notes = redis.Redis.from_url(os.environ["APP_URL"])


class Notes(StalledSignals):
    def note(self, *signal: object) -> None:
        notes.rpush("signals", json.dumps([os.getpid(), time.time(), *signal]))

    def after_worker_boot(self, broker, worker):
        notes.rpush("pids", os.getpid())

    def after_stalled_check(self, broker, queue_name, *, recovered, failed):
        self.note("check", queue_name)

    def after_stalled_recovered(self, broker, queue_name, job_ids):
        self.note("recovered", queue_name, *job_ids)


broker = RedisBroker(url=os.environ["APP_URL"])
broker.add_middleware(StalledCheckerMiddleware(url=os.environ.get("APP_CHECKER_URL")))
broker.add_middleware(Notes())
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="q")
def work(number: int) -> None:
    notes.rpush("worked", number)


@dramatiq.actor(queue_name="other")
def other() -> None:
    pass
