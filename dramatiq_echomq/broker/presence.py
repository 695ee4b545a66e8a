from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from logging import Logger
from typing import Any

import redis
from dramatiq.logging import get_logger

from ..errors import EchoMQError
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys
from ..protocol.logtext import on_one_line
from ..protocol.registrations import (
    WorkerRegistration,
    connection_name,
    connections_of,
    is_refusal,
    run_id_of,
    server_of,
)
from .forks import call_in_forked_children
from .own_registrations import OwnRegistrations
from .worker_id import worker_name

#: The socket timeout of the connections of a Presence, in seconds.
PRESENCE_TIMEOUT = 5.0

#: How many seconds pass until something wrong with the connection, or with a registration, is looked for again.
SLICE = 0.5

#: For how many seconds the first job of a queue waits until others would see its worker die.
LONGEST_WAIT = 1.0

#: After how many seconds the connection is used and the registrations are refreshed.
REFRESH = 20.0

#: How many seconds to wait after the first failed attempt to connect, and at most; well below any sensible grace.
FIRST_RETRY, LONGEST_RETRY = 0.05, 1.0

#: How often in a row the connection may not be found under its name before that counts as lasting.
MOST_UNSEEN = 10

ERRORS = (*REDIS_ERRORS, EchoMQError)


class NotSeen(redis.ConnectionError):
    """The server does not list the connection under its name."""


class Presence:
    """Shows that this process is there, by a connection to Redis that does
    nothing else: the kernel closes it when the process dies, however that
    happens, and others see it.  When it closes while the process lives, it is
    made anew at once and registered instead.

    Parameters:
      client(redis.Redis): The client that registers, and whose kind of
        connection to use.  It sends no command again.
      keys_of(Callable): Returns the keys of a queue by its name.
      worker_id(Callable): Returns what this process's lock tokens begin with.
    """

    def __init__(self, client: Any, *, keys_of: Callable[[str], QueueKeys], worker_id: Callable[[], str]) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.client = client
        self.keys_of = keys_of
        self.worker_id = worker_id
        self._queue_names: dict[str, None] = {}
        self._has_queues = threading.Event()
        self._stopping = threading.Event()  # one for each thread, as the last one may not have ended
        self._thread: threading.Thread | None = None
        self._connection: Any = None
        self.registrations: OwnRegistrations = OwnRegistrations(client, keys_of)
        self._was_tried = threading.Event()
        call_in_forked_children(Presence.close_inherited, self)

    def add_queue(self, queue_name: str) -> None:
        """Have the worker registered in a queue as well.  Where one runs that is
        done before its first job there: the job may kill it at once.
        """
        self._queue_names[queue_name] = None
        self._has_queues.set()
        if self._thread is None or not self._thread.is_alive():
            return
        self._was_tried.wait(LONGEST_WAIT)
        if (registration := self.registrations.current) is not None:
            with contextlib.suppress(*ERRORS):  # it is tried again
                self.registrations.register(registration, [queue_name])

    def start(self) -> None:
        """Start to be seen, once there is a queue."""
        if self._thread is None or not self._thread.is_alive():  # after a fork it is not
            self._stopping, self._was_tried = threading.Event(), threading.Event()
            self.registrations.current = None
            self._thread = threading.Thread(
                target=self._run, args=[self._stopping], name="dramatiq-echomq-presence", daemon=True
            )
            self._thread.start()

    def stop(self, *, leaves_jobs: bool = False) -> None:
        """Say goodbye: a worker that ends as it should did not crash.

        Parameters:
          leaves_jobs(bool): Whether some still run, for longer than the worker
            was given to end.  Nobody renews their locks any more, so others are
            to see that it is gone.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopping.set()
        self._has_queues.set()
        connection, was_seen = self._connection, self.registrations.current is not None
        if connection is not None:
            connection.disconnect()  # ends the wait for it
        thread.join(timeout=5)
        if was_seen and not leaves_jobs:  # if it was not, Redis cannot be reached now
            self.registrations.remove()
        if not self._queue_names:
            self._has_queues.clear()

    def close_inherited(self) -> None:
        """Close, in a forked child, what it has inherited: with a copy of it open
        somewhere, the connection would outlive the worker.  The child has no
        registrations yet.
        """
        self.registrations = OwnRegistrations(self.client, self.keys_of)
        inherited = getattr(self._connection, "_sock", None)
        if inherited is not None:
            inherited.close()

    def _run(self, stopping: threading.Event) -> None:
        self._has_queues.wait()
        retry, unseen = FIRST_RETRY, 0
        while not stopping.is_set():
            try:
                registration = self._connect()
                self._require_seen(registration)
                self.registrations.current, retry, unseen = registration, FIRST_RETRY, 0
                self._was_tried.set()
                self._stay(registration, stopping)
            except Exception as error:
                self.registrations.current = None
                self._was_tried.set()
                self._disconnect()
                if stopping.is_set():
                    return
                unseen += isinstance(error, NotSeen)
                if unseen == MOST_UNSEEN or is_refusal(error):
                    self._give_up(error)
                    return
                if not isinstance(error, ERRORS):
                    self.logger.warning("This worker is not seen for a moment.", exc_info=True)
                if retry > FIRST_RETRY:
                    self.registrations.remove()  # alive, but with nothing to show for it
                stopping.wait(retry)
                retry = min(retry * 2, LONGEST_RETRY)
        self._disconnect()

    def _connect(self) -> WorkerRegistration:
        pool = self._server().connection_pool
        self._connection = pool.connection_class(**pool.connection_kwargs)
        self._connection.connect()
        self._ask("CLIENT", "SETNAME", connection_name(self.worker_id()))
        return WorkerRegistration(
            self.worker_id(),
            int(self._ask("CLIENT", "ID")),
            run_id_of(self._ask("INFO", "server")),
            worker_name(),
        )

    def _stay(self, registration: WorkerRegistration, stopping: threading.Event) -> None:
        """Keep the connection until it breaks or the worker stops."""
        refreshed_at = time.monotonic()
        while not stopping.is_set():
            is_due = time.monotonic() - refreshed_at > REFRESH
            if is_due:
                refreshed_at = time.monotonic()
                self._ask("PING")
                self._require_seen(registration)
            self.registrations.register(registration, self._queue_names, again=is_due)
            if self._connection.can_read(timeout=SLICE):  # something is wrong with it
                self._ask("PING")

    def _require_seen(self, registration: WorkerRegistration) -> None:
        """Validate that the server sees this connection under its name, asked
        over another one: a proxy may stand between, or a failover was made.
        """
        found = connections_of(self._server(), [registration.client_id]).get(registration.client_id)
        if found != connection_name(registration.worker_id) or not registration.run_id:
            raise NotSeen("the server does not see this worker's connection under its name, perhaps for a proxy")

    def _give_up(self, error: Exception) -> None:
        self.registrations.remove()
        self.logger.info(
            "If this worker is killed, its jobs come back once their locks have ended, and not within seconds: %s",
            on_one_line(str(error)),
        )

    def _server(self) -> Any:
        return server_of(self.client, self.keys_of(next(iter(self._queue_names))).workers)

    def _ask(self, *command: str) -> Any:
        self._connection.send_command(*command, check_health=False)
        return self._connection.read_response(disable_decoding=True)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
