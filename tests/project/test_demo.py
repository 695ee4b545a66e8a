"""The demo as a user runs it: a command in a process of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dramatiq_echomq.cli import demo, main

from ..support.environment import ENVIRONMENT
from ..support.servers import wait_until

#: Set for the demo and inherited by whatever it starts, so that nothing of it escapes us.
MARK = "ECHOMQ_TEST_DEMO"


class Demo:
    """The command ``dramatiq-echomq demo`` in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dramatiq_echomq", "demo"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **ENVIRONMENT,
                "TMPDIR": str(directory),
                MARK: self.mark,
                "DRAMATIQ_ECHOMQ_PREFIX": "not-for-the-demo",
            },
        )

    def lines_until(self, word: str) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            if word in line:
                return
        pytest.fail(f"the demo ended without saying {word!r}")

    def running(self) -> list[psutil.Process]:
        """The processes that the demo or one of its children started."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.pid != self.process.pid:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def assert_nothing_is_left(self) -> None:
        wait_until(lambda: not self.running(), message="processes of the demo are left")
        assert list(self.directory.iterdir()) == []


@contextlib.contextmanager
def running_demo() -> Iterator[Demo]:
    with tempfile.TemporaryDirectory() as directory:
        demo = Demo(Path(directory))
        try:
            yield demo
        finally:
            demo.process.kill()
            demo.process.communicate()
            for process in demo.running():
                process.kill()


def run_in_a_terminal(directory: str) -> tuple[int, str]:
    """The exit code of the demo, and what a terminal showed of it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dramatiq_echomq", "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**ENVIRONMENT, "TMPDIR": directory, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(ours, 65536):
            output += chunk
    except OSError:
        pass  # the terminal is gone when the last process that held it has ended
    os.close(ours)
    return process.wait(20), output.decode(errors="replace")


@pytest.mark.at_once(long=True)
def test_it_shows_recovered_and_failed_jobs():
    with running_demo() as demo:
        output, _ = demo.process.communicate(timeout=100)
        assert demo.process.returncode == 0, output
        demo.assert_nothing_is_left()
    assert re.match(
        r"A Valkey server runs at \S+\. Locks last .* and a job may stall once; the defaults are .*\.\n", output
    )
    for state in ("active", "marked", "recovered", "completed"):
        assert re.search(rf"job \S+ +resize +{state}", output), state
    assert len(re.findall(r"poison +active", output)) == 2
    assert {"Dramatiq", "BullMQ"} == set(re.findall(r"resize +waiting +from (\w+)", output))
    assert output.index("frozen (SIGSTOP)") < output.index("killed (SIGKILL)")
    assert re.search(r"poison +failed +job stalled more than allowable limit", output)
    summary = dict(re.findall(r"^(recovered|completed|failed) +(\d+) ", output, re.MULTILINE))
    assert int(summary["recovered"]) >= 2
    assert summary["completed"] == "11"
    assert summary["failed"] == "1"


@pytest.mark.at_once(long=True)
def test_it_shows_a_table_in_a_terminal():
    with tempfile.TemporaryDirectory() as directory:
        code, output = run_in_a_terminal(directory)
    assert code == 0
    assert "┃" in output
    assert "[/]" not in output
    assert not re.search(r"\[(cyan|yellow|magenta|green|red|dim)\]", output)
    assert "recovered" in output
    assert "failed" in output


@pytest.mark.at_once
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["server", "active", "killed"])
def test_a_signal_ends_it_and_cleans_up(ending, moment):
    with running_demo() as demo:
        demo.lines_until(moment)
        demo.process.send_signal(ending)
        output, _ = demo.process.communicate(timeout=20)
        assert demo.process.returncode == 128 + ending
        assert "Traceback" not in output
        demo.assert_nothing_is_left()


def test_it_says_what_to_install_when_the_extra_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == "bullmq" else object())

    assert main(["demo"]) == 2
    assert 'pip install "dramatiq-echomq[demo]"' in capsys.readouterr().err
