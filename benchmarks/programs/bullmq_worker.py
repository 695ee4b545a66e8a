"""A worker of BullMQ for Python for ``benchmarks/recovery.py``: its defaults, and 8 jobs at a time."""

from __future__ import annotations

import asyncio
import os
import time

import redis.asyncio
from bullmq import Worker


async def main() -> None:
    notes = redis.asyncio.Redis.from_url(os.environ["BENCH_NOTES_URL"])

    async def process_job(job, token):
        if job.name == "load":
            await notes.incr("load")
            return
        number = job.data["number"]
        runs = await notes.hincrby("runs", number, 1)
        await notes.rpush("starts", f"{number} {time.time()} {os.getpid()}")
        if runs == 1:
            await asyncio.Event().wait()

    worker = Worker("q", process_job, {"connection": os.environ["BENCH_URL"], "concurrency": 8})
    await asyncio.Event().wait()
    await worker.close()


if __name__ == "__main__":
    asyncio.run(main())
