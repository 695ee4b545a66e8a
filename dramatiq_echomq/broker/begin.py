from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys
from ..protocol.scripts import load
from .jobs import TakenJob

#: For how many seconds a connection is used. After a failover the old one would go on to take what is lost there.
LONGEST_USE = 10.0


class BeginRecorder:
    """Tells Redis that jobs have begun, without waiting for an answer: what
    was written to the socket arrives even if the process is killed right
    after, and that is when it matters.

    Parameters:
      client(redis.Redis): The client whose kind of connection to use.
      keys_of(Callable): Gives the keys of a queue by its name.
    """

    def __init__(self, client: Any, keys_of: Callable[[str], QueueKeys]) -> None:
        self.client = client
        self.keys_of = keys_of
        self.script = load("beginJob-2.lua")
        self._mutex = threading.Lock()
        self._connection: Any = None
        self._process_id = 0
        self._opened_at = 0.0

    def record(self, queue_name: str, job: TakenJob) -> None:
        """Record that a job has begun.  When Redis cannot be reached the job
        runs all the same: if it kills this worker, that stall is not counted.
        """
        keys = self.keys_of(queue_name)
        names = [keys.job(job.job_id), keys.lock(job.job_id)]
        try:
            if getattr(self.client, "connection_pool", None) is None:
                self.script(self.client, names, [job.token])
                return
            with self._mutex:
                try:
                    self._send(names, job.token)
                except REDIS_ERRORS:
                    self._close()
                    self._send(names, job.token)
        except REDIS_ERRORS:
            with self._mutex:
                self._close()

    def close(self) -> None:
        with self._mutex:
            self._close()

    def _send(self, names: list[bytes], token: bytes) -> None:
        connection = self._connected()
        connection.can_read(timeout=0)
        connection.send_command("EVAL", self.script.code, len(names), *names, token, check_health=False)

    def _connected(self) -> Any:
        if time.monotonic() - self._opened_at > LONGEST_USE:
            self._close()
        if self._connection is None or self._process_id != os.getpid():
            connection = self.client.connection_pool.make_connection()
            connection.connect()
            connection.send_command("CLIENT", "REPLY", "OFF", check_health=False)
            self._connection, self._process_id = connection, os.getpid()
            self._opened_at = time.monotonic()
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
