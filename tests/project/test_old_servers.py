"""A Redis older than 6.2 is named at once, by whatever meets it first."""

from __future__ import annotations

import pytest
import redis
from dramatiq.brokers.stub import StubBroker
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker, ServerTooOld, StalledChecker, StalledCheckerMiddleware
from dramatiq_echomq.protocol.server_version import require_version

from ..support.brokers import booted, lines
from ..support.job_data import add, take
from ..support.old_server import OldRedis
from ..support.servers import wait_until

OLD = pytest.mark.parametrize("version", ["3.2.1", "5.0.14", "6.0.16"])


@OLD
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_message_is_refused_and_the_version_said(version, protocol):
    with OldRedis(version) as server:
        broker = EchoMQBroker(port=server.port, protocol=protocol, middleware=[])

        with pytest.raises(ServerTooOld, match=r"needs Redis 6\.2 or later, or Valkey") as caught:
            add(broker)

        assert f"the Redis at localhost:{server.port} " in str(caught.value)
        assert f"is version {version}" in str(caught.value) or (protocol == 3 and version < "6")
        assert "EVAL" not in server.asked


@OLD
def test_a_worker_that_fetches_hears_of_it(version):
    with OldRedis(version) as server:
        broker = EchoMQBroker(url=server.url, middleware=[])

        with pytest.raises(ConnectionClosed, match=r"needs Redis 6\.2"):
            take(broker)


@OLD
def test_a_checker_says_it(version):
    with OldRedis(version) as server, pytest.raises(ServerTooOld):
        StalledChecker(redis.Redis(port=server.port)).check("q")


@OLD
def test_a_sweeper_says_it_when_it_starts_and_once(version, caplog):
    with OldRedis(version) as server:
        middleware = StalledCheckerMiddleware(url=server.url, stalled_interval=100)
        with booted(StubBroker(middleware=[middleware]), "a", "b"):
            wait_until(lambda: server.asked.count("EVALSHA") > 6 or server.asked.count("HELLO") > 20)
    [line] = lines(caplog, "WARNING", "ERROR")
    assert "not recovered for now: ServerTooOld: " in line
    assert "needs Redis 6.2 or later" in line


@pytest.mark.parametrize("version", ["6.2.0", "7.0.1", "7.2.4", "8.1.8", "10.0.0", "odd", ""])
def test_a_newer_server_will_do_and_so_does_one_that_does_not_say(version):
    with OldRedis(version or "6", info=False) as server:
        assert require_version(redis.Redis(port=server.port, protocol=2)) is None  # and raises nothing


def test_a_server_that_says_no_version_is_known_by_a_command_that_it_lacks():
    """As a proxy may be, which knows no HELLO."""
    with OldRedis("5.odd", info=False) as server, pytest.raises(ServerTooOld, match="does not know a command"):
        StalledChecker(redis.Redis(port=server.port, protocol=2)).check("q")


def test_an_account_with_no_right_but_for_scripts_learns_the_version(client, redis_url):
    client.execute_command("ACL", "SETUSER", "poor", "on", ">x", "~*", "-@all", "+eval", "+evalsha")
    try:
        asked = []
        poor = redis.Redis.from_url(redis_url, username="poor", password="x")
        execute = poor.execute_command
        poor.execute_command = lambda *args, **options: asked.append(execute(*args, **options)) or asked[-1]

        require_version(poor)

        assert len(asked) == 1
    finally:
        client.execute_command("ACL", "DELUSER", "poor")


def test_a_server_is_asked_only_when_it_has_no_script(client):
    checker = StalledChecker(client)
    client.script_flush()
    checker.check("q")
    before = client.info("commandstats")["cmdstat_hello"]["calls"]

    checker.check("q")

    assert client.info("commandstats")["cmdstat_hello"]["calls"] == before
