"""What the ``dramatiq`` processes of the demo import."""

from __future__ import annotations

import os
import signal
import time

import dramatiq

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

from .settings import CRASH_GRACE, LOCK_DURATION, PREFIX, QUEUE, SECONDS_PER_JOB, STALLED_INTERVAL, URL_VARIABLE

broker = EchoMQBroker(url=os.environ[URL_VARIABLE], prefix=PREFIX, lock_duration=LOCK_DURATION)
broker.add_middleware(
    StalledCheckerMiddleware(stalled_interval=STALLED_INTERVAL, max_stalled_count=1, crash_grace=CRASH_GRACE)
)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name=QUEUE)
def resize(path: str) -> str:
    time.sleep(SECONDS_PER_JOB)
    return f"{path} is small now"


@dramatiq.actor(queue_name=QUEUE)
def poison(path: str) -> None:
    """Stands for a job that runs out of memory, or crashes in a C extension."""
    time.sleep(SECONDS_PER_JOB / 2)  # by then its neighbours have started as well
    os.kill(os.getpid(), signal.SIGKILL)
