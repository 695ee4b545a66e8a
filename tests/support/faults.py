"""Redis errors on demand, and workers that do not wait long after them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dramatiq
from dramatiq import Worker

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.protocol.scripts import Script


class Faults:
    """Errors that calls of scripts raise.

    Attributes:
      raised(list): The names of the scripts whose calls have raised one.
    """

    def __init__(self, monkeypatch) -> None:
        self.raised: list[str] = []
        self._planned: dict[str, list[tuple[Exception, bool]]] = {}
        self._mutex = threading.Lock()
        execute = Script.__call__

        def faulty(script, *args, **options):
            with self._mutex:
                planned = self._planned.get(script.file_name)
                error, has_run = planned.pop(0) if planned else (None, False)
            if error is None:
                return execute(script, *args, **options)
            if has_run:
                execute(script, *args, **options)
            self.raised.append(script.file_name)
            raise error

        monkeypatch.setattr(Script, "__call__", faulty)

    def plan(self, script: str, *errors: Exception, has_run: bool = False) -> None:
        """Let the next calls of a script raise these, after it has run or instead."""
        self._planned[script] = [(error, has_run) for error in errors]


class Log:
    """What the actor of :func:`recording_actor` did."""

    def __init__(self) -> None:
        self.started: list[object] = []
        self.ran: list[object] = []
        self.gate = threading.Event()
        self.gate.set()


def recording_actor(broker: EchoMQBroker, log: Log, **options: object) -> dramatiq.Actor:
    """An actor that notes its argument, once the gate is open; it fails for "bad"."""

    def work(what: object) -> None:
        log.started.append(what)
        log.gate.wait(20)
        log.ran.append(what)
        if what == "bad":
            raise ValueError("bad")

    return dramatiq.actor(work, broker=broker, actor_name="work", queue_name="q", **options)


@contextmanager
def running(broker: EchoMQBroker, *, threads: int = 2) -> Iterator[Worker]:
    """A worker whose consumers are all alive in the end."""
    worker = Worker(broker, worker_timeout=20, worker_threads=threads)
    worker.start()
    try:
        yield worker
        assert all(thread.is_alive() for thread in worker.consumers.values())
    finally:
        worker.stop(timeout=20_000)
        broker.close()


def quicken(monkeypatch) -> None:
    """Let Dramatiq try again soon after an error."""
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.01)
    monkeypatch.setattr("dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.01)


def settled(broker: EchoMQBroker, completed: int, failed: int = 0) -> Callable[[], bool]:
    """Whether a queue has run empty with so many jobs finished."""

    def is_settled() -> bool:
        counts = broker.get_queue_message_counts("q")
        unfinished = counts.waiting + counts.active + counts.delayed + counts.prioritized + counts.paused
        return (unfinished, counts.completed, counts.failed) == (0, completed, failed)

    return is_settled
