"""What the ``dramatiq`` processes of the demo import: a stock broker, and the middleware."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import StalledCheckerMiddleware

from .settings import QUEUE, STALLED_INTERVAL, URL_VARIABLE

broker = RedisBroker(url=os.environ[URL_VARIABLE])
broker.add_middleware(StalledCheckerMiddleware(stalled_interval=STALLED_INTERVAL, max_stalled_count=1))
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name=QUEUE)
def resize() -> None:
    """Never sent: it makes the worker consume the queue, and so check it."""
