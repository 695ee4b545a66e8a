"""Other programs that work on the same queues: processes that say what they do, a JSON line each."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from .environment import ENVIRONMENT
from .servers import Server, wait_until

PROGRAMS = Path(__file__).parent / "programs"
PACKAGES = PROGRAMS / "package.json"


class Peer:
    """A process with its lines.  It is killed in the end if it still runs."""

    def __init__(self, *command: object) -> None:
        self.said: list[list] = []
        self.process = subprocess.Popen(
            [str(word) for word in command],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROGRAMS,
            start_new_session=True,
        )
        self._complaints: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=lambda: self._complaints.extend(self.process.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for reader in self._readers:
            reader.join(20)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self.process.kill()
        assert self.process.wait(20) == -signal.SIGKILL, self._complaints

    def wait_for(self, *line: object, times: int = 1) -> None:
        """Wait until the process has said a line so often."""
        wait_until(lambda: self.said.count(list(line)) >= times or self._has_ended(), 60, f"{line} was not said")
        assert self.said.count(list(line)) >= times, (self.said, self._complaints)

    def wait_for_death(self) -> None:
        """Wait until the process has killed itself."""
        assert self.process.wait(60) == -signal.SIGKILL, self._complaints

    def tell(self, line: object) -> None:
        print(json.dumps(line), file=self.process.stdin, flush=True)

    def _has_ended(self) -> bool:
        return self.process.poll() is not None and not self._readers[0].is_alive()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.said.append(json.loads(line))


class Node:
    """BullMQ in Node.js: a shell that runs code, and workers.

    Parameters:
      url(str)
      package(str): ``bullmq``, which is version 5, or ``bullmq6``.
    """

    def __init__(self, url: str, package: str = "bullmq") -> None:
        self.url = url
        self.package = package
        self._shell = Peer("node", "shell.mjs", url, package)
        self._answered = 0
        self._listening: set[str] = set()

    def close(self) -> None:
        self._shell.__exit__()

    def run(self, code: str):
        """Run the body of an async function, with what shell.mjs gives it, and return what it returns."""
        self._shell.tell(code)
        self._answered += 1
        wait_until(lambda: len(self._shell.said) >= self._answered, 60, f"no answer to {code}")
        answer, error = self._shell.said[self._answered - 1]
        assert error is None, error
        return answer

    def listen(self, client: redis.Redis, queue: str) -> None:
        """Open the `listener` of a queue, and wait until it listens: it misses what happens while it connects."""
        if queue in self._listening:
            return

        def listeners() -> int:
            return sum(each["cmd"] == "xread" for each in client.client_list())

        before = listeners()
        self.run(f'await listener("{queue}").waitUntilReady()')
        wait_until(lambda: listeners() > before, message=f"nobody listens to {queue}")
        self._listening.add(queue)

    def worker(self, queue: str, mode: str, **options: object) -> Peer:
        return Peer("node", "worker.mjs", self.url, self.package, queue, mode, json.dumps(options))


def ready_node(url: str, package: str = "bullmq") -> Node:
    """Node.js with its packages, which are installed when they are not there. Where it cannot be had
    the test is skipped, or fails where it must be there.
    """
    with PACKAGES.open() as packages:
        fcntl.flock(packages, fcntl.LOCK_EX)  # no other thread or process installs them meanwhile
        problem = _problem_of_node()
    if problem and (os.environ.get("CI") == "true" or os.environ.get("ECHOMQ_REQUIRE_NODE") == "1"):
        pytest.fail(problem)
    if problem:
        pytest.skip(problem)
    return Node(url, package)


def _problem_of_node() -> str | None:
    if shutil.which("node") is None:
        return "node is not installed"
    wanted = json.loads(PACKAGES.read_text())["dependencies"]
    if all((PROGRAMS / "node_modules" / name).exists() for name in wanted):
        return None
    command = ["npm", "ci", "--no-audit", "--no-fund"]
    installed = subprocess.run(command, cwd=PROGRAMS, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    return installed.stderr if installed.returncode else None


@contextlib.contextmanager
def node_of_its_own() -> Iterator[tuple[Node, redis.Redis]]:
    """BullMQ in Node.js, on a server that nobody else uses, and a client of that server."""
    with Server() as server, server.client() as client, contextlib.closing(ready_node(server.url)) as node:
        yield node, client


def await_lock_end(client, queue: str, *job_ids: str) -> None:
    """Wait until the locks that a killed worker left behind have ended by themselves."""
    wait_until(lambda: not client.exists(*(f"emq:{queue}:{job_id}:lock" for job_id in job_ids)))


def is_idle(client) -> bool:
    """Whether a BullMQ worker waits for something to do."""
    return any(each["cmd"] == "bzpopmin" for each in client.client_list())
