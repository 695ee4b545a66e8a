"""A BullMQ worker, to be killed: ``python -m dramatiq_echomq.demo.bullmq_worker NAME CONCURRENCY``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from bullmq import Job, Worker

from .settings import LOCK_DURATION, QUEUE, URL_VARIABLE


async def process(job: Job, _: str) -> None:
    if job.name == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(job.data["seconds"])


async def work(name: str, concurrency: int) -> None:
    options: Any = {
        "connection": os.environ[URL_VARIABLE],
        "prefix": "emq",
        "name": name,
        "concurrency": concurrency,
        "lockDuration": LOCK_DURATION,
        # BullMQ's own check would do what the demo shows, so it never comes to that.
        "stalledInterval": 3_600_000,
    }
    worker = Worker(QUEUE, process, options)  # it stops when nothing refers to it
    worker.on("error", lambda *problem: print(*problem, file=sys.stderr, flush=True))
    await asyncio.Event().wait()
    await worker.close()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
