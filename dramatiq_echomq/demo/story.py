from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import redis
from bullmq import Queue

from .processes import Interrupts, Processes
from .screen import Screen
from .settings import LOCK_DURATION, QUEUE, STALLED_INTERVAL, URL_VARIABLE
from .watch import FINISHED, Watch

NUMBER_OF_JOBS = 12
SECONDS_PER_JOB = 0.3

#: How many seconds each part of the story may take.
PATIENCE = 12.0


class StoryFailed(Exception):
    """The demo did not go as it should."""


class Story:
    """The order of events: which process starts or dies when.

    Parameters:
      processes(Processes)
      screen(Screen)
      interrupts(Interrupts)
    """

    def __init__(self, processes: Processes, screen: Screen, interrupts: Interrupts) -> None:
        self.processes = processes
        self.screen = screen
        self.interrupts = interrupts
        self.client = processes.start_server()
        self.url = f"redis://127.0.0.1:{self.client.connection_pool.connection_kwargs['port']}/0"
        self.watch = Watch(self.client, QUEUE)

    def tell(self) -> None:
        self.until(self._server_answers, "the server to answer")
        self.screen.say(f"A Valkey server runs at {self.url}, with the queue emq:{QUEUE}.")
        self.screen.say(
            f"A `dramatiq` worker with StalledCheckerMiddleware on a RedisBroker checks it every {STALLED_INTERVAL} ms."
        )
        self.processes.start_python(
            "dramatiq", "dramatiq", f"{__package__}.app", "--processes", "1", "--threads", "1", **self._environment()
        )
        asyncio.run(self._add_jobs())
        self.screen.say(
            f"{NUMBER_OF_JOBS} jobs wait, the last one is poison. A BullMQ worker takes them four at a time."
        )
        first = self._start_bullmq("worker-1", concurrency=4)
        self.until(lambda: self.watch.number_in("completed") >= 4 <= self.watch.number_in("active"), "jobs to run")
        self.processes.kill(first)
        self.screen.say(f"worker-1 was killed (SIGKILL). The locks of its jobs end within {LOCK_DURATION} ms.")
        self._work_on()

    def summary(self) -> dict[str, tuple[int, str]]:
        """For the table at the end: counts, and what they count."""
        jobs = list(self.watch.jobs.values())
        return {
            "recovered": (sum(job.recoveries for job in jobs), "times a job of a dead worker went back to wait"),
            "completed": (sum(job.state == "completed" for job in jobs), "jobs done, each of them in the end"),
            "failed": (sum(job.state == "failed" for job in jobs), "job that killed its worker each time"),
        }

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Follow the jobs until a condition is true.

        Raises:
          Interrupted: When a signal has come.
          StoryFailed: When it takes too long.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            self.interrupts.check()
            try:
                changes = self.watch.update()
            except redis.ConnectionError:
                changes = []  # the server is not up yet
            self.screen.show(self.watch.jobs, changes)
            if condition():
                return
            if time.monotonic() > deadline:
                raise StoryFailed(f"waited {PATIENCE:g} s for {what}, in vain.\n{self.processes.last_words()}")
            time.sleep(0.05)

    def _work_on(self) -> None:
        """Have a worker until all jobs are finished, as a supervisor would."""
        number = 2
        while self.watch.number_in(*FINISHED) < NUMBER_OF_JOBS:
            worker = self._start_bullmq(f"worker-{number}", concurrency=1)
            self.screen.say(f"worker-{number} takes over, one job at a time.")
            self.until(
                lambda worker=worker: (  # type: ignore[misc]
                    worker.poll() is not None or self.watch.number_in(*FINISHED) == NUMBER_OF_JOBS
                ),
                "the jobs to finish",
            )
            if worker.poll() is not None:
                self.screen.say(f"worker-{number} died of the poison job.")
            number += 1

    def _server_answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def _start_bullmq(self, name: str, *, concurrency: int) -> Any:
        module = f"{__package__}.bullmq_worker"
        return self.processes.start_python(name, module, name, str(concurrency), **self._environment())

    async def _add_jobs(self) -> None:
        queue = Queue(QUEUE, {"connection": self.url, "prefix": "emq"})
        names = ["resize"] * (NUMBER_OF_JOBS - 1) + ["poison"]
        for name in names:
            await queue.add(name, {"seconds": SECONDS_PER_JOB}, {})
        await queue.close()

    def _environment(self) -> dict[str, str]:
        return {URL_VARIABLE: self.url, "DRAMATIQ_ECHOMQ_LOCK_DURATION": str(LOCK_DURATION)}
