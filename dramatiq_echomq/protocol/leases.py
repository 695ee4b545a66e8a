from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from typing import Any

from .system_timeout import keep_time_in_the_system

#: For how many seconds a connection is used again and again before its pool looks at it.
LEASE = 1.0


class Lease:
    """A connection that is out of its pool for a moment.  When an interrupt
    keeps its thread from giving it back, it goes back by itself.

    Parameters:
      pool(redis.ConnectionPool)

    Attributes:
      connection(redis.Connection): None before it is there, and once it has gone back.
      ends_at(float): The monotonic time after which it goes back.
      process_id(int)
    """

    __slots__ = ("_pool", "connection", "ends_at", "process_id")

    def __init__(self, pool: Any) -> None:
        self._pool: Any = pool
        self.connection: Any = None
        self.ends_at: float = time.monotonic() + LEASE
        self.process_id: int = os.getpid()

    def give_back(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            self._pool.release(connection)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # Python may be about to end
            if self.connection is not None and self.process_id == os.getpid():
                self.connection.disconnect()  # whatever is on its way is for nobody
                self.give_back()


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
            lease.give_back()
        lease = Lease(self.pool)
        lease.connection = self.pool.get_connection()
        keep_time_in_the_system(lease.connection)
        return lease

    def keep(self, lease: Lease) -> None:
        """Keep a connection for the next command."""
        self.free.append(lease)

    def end(self, lease: Lease) -> None:
        """Give back a connection that something went wrong with, and those that nobody
        uses, whose server may be another one by now.
        """
        lease.give_back()
        while self.free:
            try:
                self.free.pop().give_back()
            except IndexError:
                return
