"""The projects in ``tests/apps``, and their commands as processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .environment import ENVIRONMENT

APPS = Path(__file__).parent.parent / "apps"


class App:
    """A project of a web framework.

    Parameters:
      name(str): Its directory in ``tests/apps``.
      directory(str): For what it writes, and for a ``dramatiq`` command where there is none.
      **environment: Variables of its processes.
    """

    def __init__(self, name: str, directory: str, **environment: str) -> None:
        self.path = APPS / name
        command = Path(directory, "dramatiq")
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m dramatiq "$@"\n')
        command.chmod(0o755)
        path = f"{directory}{os.pathsep}{ENVIRONMENT['PATH']}"
        self.environment = {**ENVIRONMENT, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}

    def run(self, *words: str) -> str:
        """Run one of its commands and return what it prints."""
        done = subprocess.run(
            [sys.executable, *words], cwd=self.path, env=self.environment, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run one of its commands with all processes that it starts."""
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.path,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield process
            except BaseException:
                log.seek(0)
                print(log.read(), file=sys.stderr)
                raise
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the session that it leads, and no other
                process.wait(20)
