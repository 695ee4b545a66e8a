"""How long Redis lets others wait: the longest wait for a PING."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event

import redis


class LongestWait:
    """The longest wait for a PING, measured by another process."""

    def __init__(self, shared) -> None:
        self.shared = shared
        self.waits: list[float] = []

    def restart(self) -> None:
        time.sleep(0.05)  # a PING that waits now is of the time before
        self.shared.value = 0.0

    def note(self) -> None:
        time.sleep(0.05)
        self.waits.append(self.shared.value)


@contextmanager
def pinging(port: int) -> Iterator[LongestWait]:
    """Have a process that pings the server every ms."""
    shared, stop = multiprocessing.Value("d", 0.0), multiprocessing.Event()
    process = multiprocessing.Process(target=_ping, args=(port, shared, stop), daemon=True)
    process.start()
    yield LongestWait(shared)
    stop.set()
    process.join()


def _ping(port: int, shared, stop: Event) -> None:
    client = redis.Redis(port=port)
    while not stop.is_set():
        start = time.perf_counter()
        client.ping()
        shared.value = max(shared.value, (time.perf_counter() - start) * 1000)
        time.sleep(0.001)
