"""`dramatiq-echomq web`: the page as a process of its own."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from dramatiq_echomq.web.server import is_loopback, names_to_trust

from ..support.environment import ENVIRONMENT
from ..support.operator_data import put_busy_queue
from ..support.servers import Server, free_port


@contextlib.contextmanager
def started(*words: str, url: str, **pipes) -> Iterator[tuple[subprocess.Popen[str], list[str], str]]:
    """The process, what it has said so far, and where its page is."""
    command = [sys.executable, "-m", "dramatiq_echomq", "web", "--url", url, "--port", "0", *words]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, **pipes) as process:
        try:
            said = [process.stderr.readline(), process.stderr.readline()]
            yield process, said, re.search(r"http://[^ ]+", said[0])[0]
        finally:
            process.kill()


def status_of(address: str, **options) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, **options), timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.at_once
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(ending):
    with Server() as server, server.client() as client:
        put_busy_queue(client)
        with started(url=server.url) as (process, said, address):
            assert address.startswith("http://127.0.0.1:")
            assert "only shows; --allow-actions lets it change" in said[0]
            assert "has no login of its own" in said[1]
            assert "Here only this machine can" in said[1]
            assert status_of(f"{address}queues/q") == 200
            assert status_of(f"{address}queues/q", data=b"action=pause") == 403
            assert status_of(f"{address}queues/q", headers={"Host": "evil.example.com"}) == 400
            process.send_signal(ending)
            _, rest = process.communicate(timeout=20)
            assert process.returncode == 0
            assert rest.splitlines()[-1].endswith("The page has stopped.")


@pytest.mark.at_once
def test_it_may_change_things_when_it_is_told_so():
    with (
        Server() as server,
        started("--allow-actions", "--host", "0.0.0.0", url=server.url) as (_, said, address),
    ):
        assert "may change jobs and queues" in said[0]
        assert "can change them" in said[1]
        assert "Let a proxy with a login stand in front of it" in said[1]
        assert status_of(address.replace("0.0.0.0", "localhost"), headers={"Host": "any.example.com"}) == 200


@pytest.mark.at_once
def test_a_program_is_told_where_the_page_is():
    with (
        Server() as server,
        started("--json", "--host", "localhost", url=server.url, stdout=subprocess.PIPE) as (process, _, address),
    ):
        assert json.loads(process.stdout.readline()) == {"url": address, "actions": False}
        assert status_of(address) == 200


@pytest.mark.at_once
def test_it_starts_while_redis_is_away():
    with started(url=f"redis://127.0.0.1:{free_port()}/0") as (_, _, address):
        assert status_of(address) == 503


@pytest.mark.at_once
def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "dramatiq_echomq", "web", "--port", str(port)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)

    assert done.returncode == 4
    assert f"the page cannot be served at 127.0.0.1:{port}: Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("host", "others", "trusted"),
    [
        ("127.0.0.1", (), {"localhost", "127.0.0.1", "[::1]"}),
        ("::1", ("queues.example.com",), {"localhost", "127.0.0.1", "[::1]", "queues.example.com"}),
        ("127.0.0.2", (), {"localhost", "127.0.0.1", "[::1]", "127.0.0.2"}),
        ("0.0.0.0", (), None),
        ("0.0.0.0", ("queues.example.com",), {"queues.example.com"}),
    ],
)
def test_on_loopback_only_names_of_this_machine_are_trusted(host, others, trusted):
    names = names_to_trust(host, others)

    assert names is None if trusted is None else set(names) == trusted
    assert is_loopback(host) == (host != "0.0.0.0")
