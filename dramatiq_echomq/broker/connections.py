from __future__ import annotations

from typing import Any

from ..protocol.clients import client_with, own_client
from ..protocol.retries import BROKEN

#: For how many seconds a worker that ends waits for Redis to take what it tells others.
LEAVING = 0.5


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
      leaving(redis.Redis): For what a worker that ends tells others, if Redis
        answers soon.
    """

    def __init__(self, client: Any, whose: str) -> None:
        self.client = client
        self.commands: Any = own_client(client, whose)
        self.fetching: Any = client_with(client, resending=0)
        self._others: list[Any] = []
        self.leaving: Any = self._with_timeout(LEAVING, resending=0)

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
