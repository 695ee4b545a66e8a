from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import redis

from ..protocol.clients import SOCKET_TIMEOUT, client_with, own_client, socket_timeout_of
from ..protocol.keys import QueueKeys
from ..protocol.retries import BROKEN
from .worker_id import worker_name

#: The longest block of an idle consumer, in seconds.
LONGEST_BLOCK = 10.0


class Connections:
    """A broker's own connections to the server of a client.  Each kind of call
    waits for an answer as long as it may and no longer, in a pool that has
    room for all that wait.

    Parameters:
      client(redis.Redis): That of a cluster shares its connections, timeouts
        included.
      whose(str): What the client was given to, for a warning.

    Attributes:
      commands(redis.Redis): For what may be sent again.
      fetching(redis.Redis): For what is never sent twice: jobs that were
        fetched twice would wait for their locks to end.
    """

    def __init__(self, client: Any, whose: str) -> None:
        self.client = client
        self.commands: Any = own_client(client, whose)
        self.fetching: Any = client_with(client, resending=0)
        self._others: list[Any] = []
        self._waiting: dict[tuple[str, float], Any] = {}

    def waiting(self, keys: QueueKeys, seconds: float) -> tuple[Any, float]:
        """Return a client to block with, and for how many seconds it may.  The
        name of its connection shows BullMQ and dashboards a worker of the queue.

        Parameters:
          keys(QueueKeys): Those of the queue to wait for.
          seconds(float): For how long a consumer would block.
        """
        timeout = socket_timeout_of(self.commands) or SOCKET_TIMEOUT
        if not hasattr(self.client, "connection_pool"):
            return self.fetching, min(seconds, timeout / 2)
        seconds = min(seconds, LONGEST_BLOCK)
        place = keys.queue_name, seconds
        if place not in self._waiting:
            on_connect = _naming(keys, self.client.connection_pool.connection_kwargs.get("redis_connect_func"))
            self._waiting[place] = self._with_timeout(seconds + timeout, resending=0, on_connect=on_connect)
        return self._waiting[place], seconds

    def renewing(self, timeout: float) -> Any:
        """Make a client for renewals: one may fail, the next one comes soon."""
        return self._with_timeout(timeout, resending=timeout, resend_after=BROKEN)

    def watching(self, timeout: float) -> Any:
        """Make a client for the presence of a worker, which connects anew by itself."""
        return self._with_timeout(timeout, resending=0)

    def close(self) -> None:
        """Close all connections but those of the client."""
        for client in (self.commands, self.fetching, *self._others):
            if hasattr(client, "connection_pool"):
                client.connection_pool.disconnect()

    def _with_timeout(self, seconds: float, **how: Any) -> Any:
        client = client_with(self.client, socket_timeout=seconds, **how)
        self._others.append(client)
        return client


def _naming(keys: QueueKeys, on_connect: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """Make a function that prepares a connection, as the given one or redis-py
    does, and names it as BullMQ's workers name theirs.  Without the right to do
    so, or where the prefix fits into no name, it stays without.
    """

    def prepare(connection: Any) -> None:
        if on_connect is None:
            connection.on_connect()
        else:
            on_connect(connection)
        queue = base64.b64encode(keys.queue_name.encode()).decode()
        try:
            connection.send_command("CLIENT", "SETNAME", f"{keys.prefix}:{queue}:w:{worker_name()}")
            connection.read_response()
        except redis.ResponseError:
            pass

    return prepare
