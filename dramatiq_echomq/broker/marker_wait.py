from __future__ import annotations

import base64
import contextlib
import os
import select
import socket
import time
from typing import Any

import redis

from ..protocol.keys import QueueKeys
from ..protocol.registrations import server_of
from ..protocol.server_version import require_known_commands
from .worker_id import worker_name

#: For how many seconds Redis holds a command that waits. Shared by all that wait, it is what an idle worker costs.
LONGEST_BLOCK = 10.0

#: The shortest block. Redis before 7 cuts a timeout down to whole ms, and 0 is for ever.
SHORTEST_BLOCK = 0.002

#: How many seconds later than its end a block may be answered.
GRACE = 5.0


class MarkerWait:
    """Waits for the marker of a queue, on a connection of its own.  One
    BZPOPMIN goes on over many calls of :meth:`wait`, so that Redis has next
    to nothing to do for an idle worker, while the worker looks up as often as
    it likes, and at once when :meth:`wake` is called.

    The connection has the name by which BullMQ and dashboards know the workers
    of a queue, if the user may give it one.

    Parameters:
      client(redis.Redis): The client whose kind of connection to use.
      keys(QueueKeys)

    Attributes:
      is_blocking(bool): Whether Redis holds a command.
      has_marker(bool): Whether this may have taken the marker.  To be unset
        when it was used, or put back for others.
    """

    def __init__(self, client: Any, keys: QueueKeys) -> None:
        self.client = client
        self.marker: str = keys.marker
        self.name: str = f"{keys.prefix}:{base64.b64encode(keys.queue_name.encode()).decode()}:w:{worker_name()}"
        self.is_blocking: bool = False
        self.has_marker: bool = False
        self._ends_at = 0.0
        self._connection: Any = None
        self._process_id = 0
        self._waking, self._woken = socket.socketpair()
        self._waking.setblocking(False)
        self._woken.setblocking(False)

    def connect(self) -> None:
        """Connect, so that a worker is seen, although it may be too busy to wait."""
        self._connected()

    def start(self, seconds: float) -> None:
        """Let Redis hold a command until there is a marker, or for so many seconds at most."""
        if self.is_blocking and self._process_id == os.getpid():
            return
        seconds = max(min(seconds, LONGEST_BLOCK), SHORTEST_BLOCK)
        connection = self._connected()
        try:
            connection.send_command("BZPOPMIN", self.marker, seconds, check_health=False)
        except Exception:
            self._disconnect()
            raise
        self.is_blocking, self._ends_at = True, time.monotonic() + seconds

    def wait(self, seconds: float) -> bool:
        """Wait until Redis answers, until woken, or for so many seconds.

        Returns:
          bool: Whether the block has ended: there is a marker, or there was
            none for as long as it was to last.

        Raises:
          redis.RedisError: When Redis cannot be used, or does not answer.
        """
        try:
            if not self._is_answered(seconds):
                if time.monotonic() > self._ends_at + GRACE:
                    raise redis.TimeoutError("Redis did not end a block")
                return False
            self._connection.read_response(disable_decoding=True)
        except Exception:
            self._disconnect()
            raise
        self.is_blocking, self.has_marker = False, True
        return True

    def wake(self) -> None:
        """Let the thread that waits look up, now or as soon as it waits."""
        with contextlib.suppress(OSError):
            self._waking.send(b"\0")

    def end(self) -> bool:
        """End the block, if there is one.

        Returns:
          bool: Whether another worker is to have the marker: this has it, or
            a block may have taken it whose answer has not arrived, or got lost.
        """
        if self.is_blocking and self._process_id == os.getpid():
            self._disconnect()
        return self.has_marker

    def close(self) -> None:
        """Close all that was opened."""
        self._disconnect()
        self._waking.close()
        self._woken.close()

    def _is_answered(self, seconds: float) -> bool:
        if self._connection.can_read(timeout=0):
            return True
        own_socket = getattr(self._connection, "_sock", None)
        if own_socket is None:  # it was disconnected meanwhile
            raise redis.ConnectionError("the connection was closed")
        readable = _readable([own_socket, self._woken], seconds)
        if self._woken in readable:
            with contextlib.suppress(BlockingIOError):
                while self._woken.recv(1024):
                    pass
        return own_socket in readable and bool(self._connection.can_read(timeout=0))

    def _connected(self) -> Any:
        if self._process_id != os.getpid():
            self._connection = None  # after a fork it is the other process's
        if self._connection is None:
            pool = server_of(self.client, self.marker).connection_pool
            connection = pool.connection_class(**pool.connection_kwargs)
            try:
                connection.connect()
            except redis.ResponseError as error:
                require_known_commands(self.client, error)
                raise
            with contextlib.suppress(redis.ResponseError):
                connection.send_command("CLIENT", "SETNAME", self.name, check_health=False)
                connection.read_response()
            self._connection, self._process_id = connection, os.getpid()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        was_blocking, self.is_blocking = self.is_blocking, False
        if connection is not None and self._process_id == os.getpid():
            self.has_marker = self.has_marker or was_blocking
            with contextlib.suppress(Exception):
                connection.disconnect()


def _readable(sockets: list[socket.socket], seconds: float) -> list[socket.socket]:
    """Return those of some sockets that can be read from within so many seconds."""
    if not hasattr(select, "poll"):
        return select.select(sockets, [], [], seconds)[0]
    poll = select.poll()
    for each in sockets:
        poll.register(each, select.POLLIN)
    found = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
    return [each for each in sockets if each.fileno() in found]
