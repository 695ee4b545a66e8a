from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import redis
from redis.client import NEVER_DECODE

from .leases import Leases
from .system_timeout import is_timeout

#: Whether a pool gives a connection to whoever does not say for which command: since redis-py 5.3.
_NEEDS_NO_NAME = (
    inspect.signature(redis.ConnectionPool.get_connection).parameters["command_name"].default
    is not inspect.Parameter.empty
)

#: The option of a command that changes when it is sent again: which of its words, and what it becomes.
SENT_AGAIN = "SENT_AGAIN"


class InterruptibleRedis(redis.Redis):
    """A client for threads that are interrupted, as TimeLimit and the like do.
    An interrupt between a command and its reply closes the connection: the
    next one to use it would take the reply for that of its own command.
    """

    def __init__(self, connection_pool: redis.ConnectionPool) -> None:
        super().__init__(connection_pool=connection_pool)
        self.leases: Leases = Leases(connection_pool)

    def _send_command_parse_response(self, conn: Any, command_name: str, *args: Any, **options: Any) -> Any:
        send: Callable[..., Any] = super()._send_command_parse_response
        return _closing_if_interrupted(conn, lambda: send(conn, command_name, *args, **options))

    def _execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a script in fewer steps than redis-py, which calls this since
        its version 5.1: for a script, most of the time is spent in here.
        """
        if self.connection is not None or NEVER_DECODE not in options or not _NEEDS_NO_NAME:
            return super()._execute_command(*args, **options)  # type: ignore[no-untyped-call]
        lease = self.leases.take()
        connection = lease.connection
        succeeded = False

        def fail(*_: object) -> None:
            nonlocal args
            connection.disconnect()
            if SENT_AGAIN in options:
                args = as_sent_again(args, options[SENT_AGAIN])

        try:
            reply = connection.retry.call_with_retry(
                lambda: _closing_if_interrupted(connection, lambda: ask(connection, packed(args))), fail
            )
            succeeded = True
            return reply
        finally:
            if _is_to_reconnect(connection):
                connection.disconnect()
            if succeeded:
                self.leases.keep(lease)
            else:
                self.leases.end(lease)


def as_sent_again(words: Sequence[Any], change: tuple[int, bytes]) -> tuple[Any, ...]:
    """Return the words of a command as they are when it is sent again."""
    at, word = change
    return (*words[:at], word, *words[at + 1 :])


def packed(words: Sequence[Any]) -> bytes:
    """Return a command of bytes, texts and whole numbers as Redis reads it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        value = word if isinstance(word, bytes) else str(word).encode()
        parts += (b"$%d\r\n" % len(value), value, b"\r\n")
    return b"".join(parts)


def ask(connection: Any, command: bytes) -> Any:
    """Send a command and return its reply."""
    try:
        connection.send_packed_command([command])
        return connection.read_response(disable_decoding=True)
    except redis.ConnectionError as error:
        if is_timeout(error):
            raise redis.TimeoutError("Redis did not answer in time") from error
        raise


def _closing_if_interrupted(connection: Any, do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception:
        raise
    except BaseException:
        connection.disconnect()
        raise


def _is_to_reconnect(connection: Any) -> bool:
    """Return whether the server has told that the connection is to move, which redis-py knows since its version 7."""
    return hasattr(connection, "should_reconnect") and bool(connection.should_reconnect())
