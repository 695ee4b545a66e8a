"""Real ``dramatiq`` processes, ended by process id."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

import redis

from .environment import ENVIRONMENT
from .peer import PROGRAMS
from .servers import wait_until

GEVENT = "from gevent import monkey; monkey.patch_all(); import sys; from dramatiq.cli import main; sys.exit(main())"


class Workers:
    """A ``dramatiq`` command that runs ``programs/dramatiq_app.py``.

    Parameters:
      url(str): The Redis of the broker.
      options(str): Those of the command: ``"--queues", "q"``.
      interval(int): The ms between two checks.
      checker_url(str): The Redis of the middleware, if it is not the broker's client.
    """

    def __init__(
        self, url: str, *options: str, processes: int = 1, interval: int = 100, checker_url: str = "", gevent=False
    ) -> None:
        self.client = redis.Redis.from_url(url)
        self.processes = processes
        self.known = {int(pid) for pid in self.client.lrange("pids", 0, -1)}
        environment = {
            "APP_URL": url,
            "DRAMATIQ_ECHOMQ_STALLED_INTERVAL": str(interval),
            "dramatiq_restart_delay": "100",
        }
        if checker_url:
            environment["APP_CHECKER_URL"] = checker_url
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.master = subprocess.Popen(
            [
                *(sys.executable, *(["-c", GEVENT] if gevent else ["-m", "dramatiq"])),
                *("dramatiq_app", "--processes", str(processes), "--threads", "1", *options),
            ],
            cwd=PROGRAMS,
            env={**ENVIRONMENT, **environment},
            stderr=self._log,
            start_new_session=True,
        )

    def __enter__(self) -> Workers:
        try:
            wait_until(lambda: len(self.pids()) == self.processes or self.master.poll() is not None, timeout=60)
            assert self.master.poll() is None, self.log()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.master.pid, signal.SIGKILL)  # the session that this master leads, and no other
        self.master.wait(20)
        self.client.close()
        self._log.close()

    def terminate(self, timeout: float = 60) -> int:
        """Ask the master to end, and wait for it."""
        self.master.terminate()
        return self.master.wait(timeout)

    def pids(self) -> set[int]:
        """The worker processes, those that have ended as well."""
        return {int(pid) for pid in self.client.lrange("pids", 0, -1)} - self.known

    def signals(self, name: str) -> list[list]:
        """The signals with a name: pid, time, queue and what else each said, the first one first."""
        said = (json.loads(line) for line in self.client.lrange("signals", 0, -1))
        return [[pid, at, *rest] for pid, at, signal_name, *rest in said if signal_name == name]

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
