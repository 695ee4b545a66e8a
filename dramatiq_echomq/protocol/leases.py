from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, NamedTuple

from .system_timeout import keep_time_in_the_system

#: For how many seconds a connection is used again and again before its pool looks at it.
LEASE = 1.0


class Lease(NamedTuple):
    """A connection that is out of its pool for a moment.

    Parameters:
      connection(redis.Connection)
      ends_at(float): The monotonic time after which it goes back.
      process_id(int)
    """

    connection: Any
    ends_at: float
    process_id: int


class Leases:
    """Connections of a pool that are used again before they go back to it: a
    pool that is asked for each command looks each time whether the server has
    closed the connection, which takes as long as all else that a client does
    for a command.

    Parameters:
      pool(redis.ConnectionPool)

    Attributes:
      free(deque[Lease]): Those that no thread uses now.
    """

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.free: deque[Lease] = deque()

    def take(self) -> Lease:
        """Take a connection that no other thread has."""
        while self.free:
            try:
                lease = self.free.pop()
            except IndexError:  # another thread was quicker
                break
            if lease.process_id != os.getpid():  # it belongs to the process that this one was forked from
                continue
            if time.monotonic() < lease.ends_at:
                return lease
            self.pool.release(lease.connection)
        connection = self.pool.get_connection()
        keep_time_in_the_system(connection)
        return Lease(connection, time.monotonic() + LEASE, os.getpid())

    def keep(self, lease: Lease) -> None:
        """Keep a connection for the next command."""
        self.free.append(lease)

    def end(self, lease: Lease) -> None:
        """Give back a connection that something went wrong with, and those that nobody
        uses, whose server may be another one by now.
        """
        self.pool.release(lease.connection)
        while self.free:
            try:
                self.pool.release(self.free.pop().connection)
            except IndexError:
                return
