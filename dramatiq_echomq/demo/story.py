from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import redis
from bullmq import Queue
from dramatiq import Message

from dramatiq_echomq import EchoMQBroker, Settings

from .processes import Interrupts, Processes
from .screen import Screen
from .settings import CRASH_GRACE, LOCK_DURATION, PREFIX, QUEUE, STALLED_INTERVAL, URL_VARIABLE
from .watch import FINISHED, Watch

THREADS = 4

#: How many seconds each part of the story may take.
PATIENCE = 15.0


#: The defaults of the settings that the demo has made shorter.
_DEFAULTS = (
    f"{Settings.lock_duration / 1000:g} s, {Settings.stalled_interval / 1000:g} s and {Settings.max_stalled_count} time"
)


class StoryFailed(Exception):
    """The demo did not go as it should."""


class Story:
    """The order of events: who adds jobs, and which process starts or dies when.

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
        self.watch = Watch(self.client, QUEUE, PREFIX)
        self.jobs_added = 0
        self.workers_started = 0

    def tell(self) -> None:
        self.until(self._server_answers, "the server to answer")
        self.screen.say(
            f"A Valkey server runs at {self.url}. Locks last {LOCK_DURATION} ms, checks are made every "
            f"{STALLED_INTERVAL} ms, and a job may stall once; the defaults are {_DEFAULTS}.\n"
        )
        self._one_worker_is_killed_and_one_is_frozen()
        self._a_job_kills_its_workers()

    def summary(self) -> dict[str, tuple[int, str]]:
        """For the table at the end: counts, and what they count."""
        return {
            "recovered": (
                sum(job.recoveries for job in self.watch.jobs.values()),
                "times a job of a dead worker came back",
            ),
            "completed": (self.watch.number_in("completed"), "jobs, all that did not kill their workers"),
            "failed": (self.watch.number_in("failed"), "job, which killed its worker each time"),
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
            with suppress(redis.ConnectionError):  # the server may not be up yet
                self.screen.show(self.watch.jobs, self.watch.update())
            if condition():
                return
            if time.monotonic() > deadline:
                raise StoryFailed(f"waited {PATIENCE:g} s for {what}, in vain.\n{self.processes.last_words()}")
            time.sleep(0.05)

    def _one_worker_is_killed_and_one_is_frozen(self) -> None:
        self.screen.say("Dramatiq sends 5 messages.")
        self._send("resize", 5)
        sleeper = self._start_worker()
        self.until(lambda: self.watch.number_in("active") >= 2, "jobs to run")
        self.processes.freeze(sleeper)
        held = self.watch.number_in("active")
        self.screen.say("This worker was frozen (SIGSTOP) in the middle of its jobs. A BullMQ client adds 3 more.")
        self._add_with_bullmq(["resize"] * 3)
        victim = self._start_worker()
        self.until(lambda: self.watch.number_in("active") >= held + 2, "more jobs to run")
        self.processes.kill(victim)
        self.screen.say(
            "And this one was killed (SIGKILL). Its connection to Redis has closed, and its jobs are back in about "
            f"{CRASH_GRACE / 1000 + 1:g} s. Those of the frozen one are back once their locks have ended."
        )
        self._work_on("the jobs of both to be done")

    def _a_job_kills_its_workers(self) -> None:
        self.screen.say("Now a BullMQ client adds a job that kills its worker, and 3 harmless ones with it.")
        self._add_with_bullmq(["poison", *["resize"] * 3])
        self._work_on("the jobs to be done")

    def _work_on(self, what: str) -> None:
        """Have a worker until all jobs are finished, as a supervisor would."""
        while not self._all_finished():
            worker = self._worker()
            self.until(lambda worker=worker: worker.poll() is not None or self._all_finished(), what)  # type: ignore[misc]
            if worker.poll() is not None:
                self.screen.say("A worker was killed by its job.")

    def _all_finished(self) -> bool:
        return self.watch.number_in(*FINISHED) == self.jobs_added

    def _server_answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def _worker(self) -> subprocess.Popen[bytes]:
        """Return the worker that runs, or a new one."""
        running = self.processes.running("worker")
        return running[0] if running else self._start_worker()

    def _start_worker(self) -> subprocess.Popen[bytes]:
        self.workers_started += 1
        self.screen.say(f"Worker {self.workers_started} starts: a `dramatiq` process with {THREADS} threads.")
        options = ["--processes", "1", "--threads", str(THREADS)]
        environment = {URL_VARIABLE: self.url}
        return self.processes.start_python("worker", "dramatiq", f"{__package__}.app", *options, **environment)

    def _send(self, actor_name: str, number: int) -> None:
        broker = EchoMQBroker(url=self.url, prefix=PREFIX)
        for _ in range(number):
            message: Message[None] = Message(
                queue_name=QUEUE, actor_name=actor_name, args=(self._next_path(),), kwargs={}, options={}
            )
            broker.enqueue(message)
        broker.close()

    def _add_with_bullmq(self, names: list[str]) -> None:
        async def add() -> None:
            queue = Queue(QUEUE, {"connection": self.url, "prefix": PREFIX})
            for name in names:
                await queue.add(name, {"args": [self._next_path()], "kwargs": {}}, {})
            await queue.close()

        asyncio.run(add())

    def _next_path(self) -> str:
        self.jobs_added += 1
        return f"/images/{self.jobs_added}.png"
