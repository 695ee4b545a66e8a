"""Connections that are used again before they go back to their pool."""

from __future__ import annotations

import itertools
import multiprocessing
import socket
import ssl
import sys
import time
from struct import Struct

import pytest
import redis

from dramatiq_echomq.protocol import interruptible, leases, scripts, system_timeout
from dramatiq_echomq.protocol.clients import client_with
from dramatiq_echomq.protocol.leases import Leases
from dramatiq_echomq.protocol.system_timeout import keep_time_in_the_system

from ..support.proxy import LossyProxy, Switch
from ..support.servers import Server

ASKS = scripts.Script("asks-1.lua", "--]]\nreturn redis.call('GET', KEYS[1])")

pytestmark = pytest.mark.skipif(not interruptible._NEEDS_NO_NAME, reason="older versions of redis-py ask their pool")


@pytest.fixture
def own(client):
    """A client that never sends a command twice."""
    client.set("key", "value")
    client.script_load(ASKS.text)
    own = client_with(client, resending=0)
    yield own
    own.close()


def ask(own: redis.Redis) -> bytes:
    return ASKS(own, ["key"], [], only_reads=True)


def ids(own: redis.Redis) -> set[int]:
    """The connections that are on lease, by what the server calls them."""
    found = set()
    for lease in own.leases.free:
        lease.connection.send_command("CLIENT", "ID")
        found.add(lease.connection.read_response())
    return found


def test_a_connection_is_used_again_until_its_lease_ends(own, monkeypatch):
    monkeypatch.setattr(leases, "LEASE", 600)
    taken = []
    get = own.connection_pool.get_connection
    monkeypatch.setattr(own.connection_pool, "get_connection", lambda: taken.append(time.monotonic()) or get())
    for _ in range(20):
        assert ask(own) == b"value"
    assert len(taken) == 1
    monkeypatch.setattr(leases.time, "monotonic", lambda: taken[0] + leases.LEASE + 1)
    assert ask(own) == b"value"
    assert len(taken) == 2
    assert own.connection_pool._created_connections == 1  # the same one, which was looked at


def test_a_connection_that_the_server_closed_long_ago_is_found_before_a_command_is_lost(own, client, monkeypatch):
    monkeypatch.setattr(leases, "LEASE", 0)
    ask(own)
    for number in ids(own):
        client.client_kill_filter(_id=number)
    assert ask(own) == b"value"


def test_a_command_fails_on_a_connection_that_the_server_has_just_closed_and_the_next_one_does_not(
    own, client, monkeypatch
):
    monkeypatch.setattr(leases, "LEASE", 600)
    ask(own)
    for number in ids(own):
        client.client_kill_filter(_id=number)
    with pytest.raises(redis.ConnectionError):
        ask(own)
    assert ask(own) == b"value"


def test_after_an_error_no_connection_is_trusted_that_may_lead_to_the_same_server():
    with Server() as old, Server() as new, Switch(old.port) as switch:
        for server, value in ((old, "old"), (new, "new")):
            with server.client() as direct:
                direct.set("key", value)
                direct.script_load(ASKS.text)
        own = client_with(redis.Redis(port=switch.port, socket_timeout=5), resending=0)
        free = [own.leases.take() for _ in range(5)]
        for lease in free:
            own.leases.keep(lease)
        assert ask(own) == b"old"
        switch.to(new.port, drop=True)
        with pytest.raises(redis.ConnectionError):
            ask(own)
        assert [ask(own) for _ in range(6)] == [b"new"] * 6
        own.close()


@pytest.mark.parametrize("seconds", [0.2, 1.1])
def test_the_system_ends_a_wait_in_time(client, seconds):
    port = client.connection_pool.connection_kwargs["port"]
    client.set("key", "value")
    with LossyProxy(port) as proxy:
        own = client_with(redis.Redis(port=proxy.port), socket_timeout=seconds, resending=0)
        assert ask(own) == b"value"
        assert own.leases.free[0].connection._sock.gettimeout() is None  # it is not Python that keeps the time
        proxy.silent.set()
        started = time.monotonic()
        with pytest.raises(redis.TimeoutError):
            ask(own)
        assert seconds * 0.9 < time.monotonic() - started < seconds + 20
        proxy.silent.clear()
        assert ask(own) == b"value"  # by another connection: the late reply reaches nobody
        own.close()


def test_a_command_that_cannot_be_sent_is_given_up_in_time(client):
    with socket.create_server(("127.0.0.1", 0)) as listener:  # which reads nothing
        own = client_with(redis.Redis(port=listener.getsockname()[1]), socket_timeout=0.3, resending=0)
        connection = own.connection_pool.make_connection()
        connection._sock = socket.create_connection(listener.getsockname())
        keep_time_in_the_system(connection)
        with pytest.raises(redis.TimeoutError):
            interruptible.ask(connection, b"x" * 50_000_000)
        own.close()


class Abort(BaseException):
    """What middleware may raise in any thread, anywhere."""


def interrupted_at(line: int, work) -> bool:
    """Raise where the thread comes to the n-th line of what takes a connection and uses it. Return whether it did."""
    lines = itertools.count()

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in (interruptible.__file__, leases.__file__):
            return None
        if frame.f_code.co_name in ("give_back", "__del__"):
            return None
        if event == "line" and next(lines) == line:
            raise Abort
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Abort:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("is_new", [True, False], ids=["a new connection", "a connection that is used again"])
def test_an_interrupt_wherever_it_comes_neither_keeps_a_connection_nor_mixes_up_replies(own, client, is_new):
    client.set("other", "another value")
    line, pool = 0, own.connection_pool
    while True:
        own.leases.free.clear()
        if not is_new:
            ask(own)
        if not interrupted_at(line, lambda: ASKS(own, ["other"], [], only_reads=True)):
            break
        assert len(pool._in_use_connections) == len(own.leases.free) <= 1, f"after {line} lines"
        assert ask(own) == b"value"
        line += 1
    assert line > 20
    assert pool._created_connections <= 2


class WithSocket:
    """What a connection of redis-py has that matters here."""

    socket_timeout = 3.0

    def __init__(self, own_socket) -> None:
        self._sock = own_socket


class OtherSocket(socket.socket):
    """Reads in a way of its own, as those of gevent do."""

    def recv(self, *args):
        return super().recv(*args)


@pytest.mark.parametrize("kind", ["tls", "other", "none", "no timeout", "a system of 32 bits"])
def test_other_kinds_of_connections_keep_the_timeout_that_they_have(kind, monkeypatch):
    plain = OtherSocket() if kind == "other" else socket.socket()
    plain.settimeout(3.0)
    own_socket = ssl.create_default_context().wrap_socket(plain, server_hostname="x") if kind == "tls" else plain
    connection = WithSocket(None if kind == "none" else own_socket)
    if kind == "no timeout":
        connection.socket_timeout = None
    if kind == "a system of 32 bits":
        monkeypatch.setattr(system_timeout, "TIME", Struct("ii"))
    keep_time_in_the_system(connection)
    assert own_socket.gettimeout() == 3.0
    own_socket.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_child_does_not_use_the_connections_of_its_parent(own, client):
    def child():
        ask(own)
        own.set("ids", ",".join(map(str, ids(own))))

    ask(own)
    mine = ids(own)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(20)
    assert process.exitcode == 0
    theirs = {int(number) for number in client.get("ids").split(b",")}
    assert len(theirs) == 1
    assert not theirs & mine
    assert ask(own) == b"value"
    assert ids(own) == mine


def test_threads_never_share_a_connection():
    class Pool:
        made = 0

        def get_connection(self):
            self.made += 1
            return WithSocket(None)

        def release(self, connection):
            raise AssertionError("nothing went wrong")

    free = Leases(Pool())
    first, second = free.take(), free.take()
    assert first.connection is not second.connection
    free.keep(first)
    assert free.take().connection is first.connection
    assert free.pool.made == 2
