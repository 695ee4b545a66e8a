"""A BullMQ worker: ``python worker.py URL QUEUE MODE [OPTIONS]``, with the modes and the lines of worker.mjs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from bullmq import Worker

DEFAULTS = {"prefix": "emq", "drainDelay": 1, "stalledInterval": 3_600_000}


def say(*words: object) -> None:
    print(json.dumps(words), flush=True)


async def main(url: str, queue: str, mode: str, options: str = "{}") -> None:
    async def process_job(job, token):
        say("took", job.id)
        if mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode != "finish":
            await asyncio.Event().wait()
        return f"done by {mode}"

    lock_duration = 30_000 if mode == "finish" else 500
    own = {"connection": url, "lockDuration": lock_duration, **DEFAULTS, **json.loads(options)}
    worker = Worker(queue, process_job, own)
    worker.on("completed", lambda job, result: say("completed", job.id))
    worker.on("failed", lambda job, error: say("failed", job.id, str(error)))
    worker.on("error", lambda *problem: print(*problem, file=sys.stderr, flush=True))
    say("ready")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
