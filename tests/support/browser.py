"""A real browser, Debian's Chromium, and a server for it to ask."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.serving import make_server

from .environment import ENVIRONMENT
from .pages import text_of


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page: its elements in the end, and what it complained about."""

    page: str
    complaints: list[str]

    @property
    def text(self) -> str:
        return text_of(self.page)


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a free port, and yield its URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


def visit(url: str, *options: str, milliseconds: int = 500) -> Visit:
    """Look at a page for so many ms of the browser's own time."""
    said = _chromium(url, "--dump-dom", f"--virtual-time-budget={milliseconds}", *options)
    return Visit(said.stdout, [line for line in said.stderr.splitlines() if "CONSOLE" in line])


def _chromium(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("chromium")
    if binary is None and (os.environ.get("CI") == "true" or os.environ.get("ECHOMQ_REQUIRE_BROWSER") == "1"):
        pytest.fail("chromium is not installed")
    if binary is None:
        pytest.skip("chromium is not installed")
    with tempfile.TemporaryDirectory(prefix="echomq-browser-", ignore_cleanup_errors=True) as profile:
        always = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        command = [binary, *always, *options, f"--user-data-dir={profile}", url]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100, check=True)
