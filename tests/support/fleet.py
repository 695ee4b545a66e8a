"""Several ``dramatiq`` commands that run ``programs/echomq_app.py``, each started again when it ends."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import redis

from .environment import ENVIRONMENT
from .peer import PROGRAMS
from .servers import Server, wait_until


@contextlib.contextmanager
def two_servers(*options: str, **parameters: object) -> Iterator[tuple[Server, redis.Redis, redis.Redis]]:
    """A server to test with, a client of it with these parameters, and one of another server, for the notes."""
    with Server(*options) as server, server.client(**parameters) as direct, Server() as other, other.client() as notes:
        yield server, direct, notes


class Fleet:
    """Groups of processes, each a master with one worker process.

    Parameters:
      url(str): The Redis of the broker.
      notes(redis.Redis): Where the processes note what they do; empty in the beginning.
      size(int): How many masters.
      threads(int): How many threads each worker process has.
      environment(Mapping): Further variables.
      **settings: Of the broker and the middleware.
    """

    def __init__(
        self, url: str, notes: redis.Redis, *, size: int = 1, threads: int = 8, environment=(), **settings: object
    ) -> None:
        self.notes = notes
        self.threads = threads
        self._environment = {
            **ENVIRONMENT,
            "APP_URL": url,
            "APP_NOTES_URL": "redis://{host}:{port}/{db}".format(**notes.connection_pool.connection_kwargs),
            "dramatiq_restart_delay": "200",
            "dramatiq_worker_timeout": "200",
            **{f"DRAMATIQ_ECHOMQ_{name.upper()}": str(value) for name, value in settings.items()},
            **dict(environment),
        }
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._ending = threading.Event()
        self.masters: list[subprocess.Popen] = [self._start() for _ in range(size)]
        self._keepers = [threading.Thread(target=self._keep, args=(at,), daemon=True) for at in range(size)]

    def __enter__(self) -> Fleet:
        try:
            for keeper in self._keepers:
                keeper.start()
            wait_until(lambda: self.notes.hlen("pids") >= len(self.masters), timeout=60, message="not all have booted")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for master in self.masters:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(master.pid, signal.SIGKILL)
        for keeper in self._keepers:
            keeper.join(20)
        for master in self.masters:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(master.pid, signal.SIGKILL)
            master.wait(20)
        self._log.close()

    def pids(self) -> list[int]:
        """The worker processes of the masters that run now, those that have booted."""
        booted = self.notes.hgetall("pids")
        found = (booted.get(str(master.pid).encode()) for master in self.masters if master.poll() is None)
        return [int(pid) for pid in found if pid]

    def kill_one(self, chance: random.Random) -> bool:
        """Kill a worker process, if one runs."""
        pids = self.pids()
        for pid in chance.sample(pids, k=len(pids)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def ask_to_end(self) -> None:
        """Ask all masters to end, without waiting for it."""
        self._ending.set()
        for master in self.masters:
            master.terminate()

    def terminate(self) -> list[int]:
        """Ask all masters to end, if they were not asked before, and wait for them. Returns their exit codes."""
        if not self._ending.is_set():
            self.ask_to_end()
        return [master.wait(60) for master in self.masters]

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def _start(self) -> subprocess.Popen:
        command = [sys.executable, "-m", "dramatiq", "echomq_app", "--processes", "1", "--threads", str(self.threads)]
        return subprocess.Popen(command, cwd=PROGRAMS, env=self._environment, stderr=self._log, start_new_session=True)

    def _keep(self, at: int) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.masters[at].wait(0.1)
                if not self._ending.is_set():
                    self.masters[at] = self._start()
