from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from logging import Logger
from typing import Any

from dramatiq.logging import get_logger

from ..errors import QueueRefused
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys
from ..protocol.registrations import REGISTRATION_KEPT_FOR, WorkerRegistration
from ..protocol.scripts import load


class OwnRegistrations:
    """What stands in Redis for this worker, in each of its queues.  Any thread
    may add a queue.

    Parameters:
      client(redis.Redis): One that sends no command again.
      keys_of(Callable): Returns the keys of a queue by its name.

    Attributes:
      current(WorkerRegistration | None): What is to stand there, while others
        see its connection.
    """

    def __init__(self, client: Any, keys_of: Callable[[str], QueueKeys]) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.client = client
        self.keys_of = keys_of
        self.current: WorkerRegistration | None = None
        self._registered: dict[str, bytes] = {}  # by queue, what stands in Redis
        self._mutex = threading.Lock()

    def register(self, registration: WorkerRegistration, queue_names: Iterable[str], *, again: bool = False) -> None:
        """Register in the queues in which another connection stands for the worker, or none.

        Parameters:
          registration(WorkerRegistration): Nothing is done when it is not the current one any more.
          queue_names(Iterable[str])
          again(bool): Whether to refresh what stands in the others.

        Raises:
          redis.RedisError: When Redis cannot be used.
        """
        text = registration.encode()
        for name in tuple(queue_names):
            with self._mutex:
                before = self._registered.get(name, b"")
                if registration is not self.current:
                    return
                if again or before != text:
                    self._register(name, text, before)

    def remove(self) -> None:
        """Take the worker out of all queues, if Redis can be used."""
        try:
            for name, text in tuple(self._registered.items()):
                self.client.zrem(self.keys_of(name).workers, text)
                del self._registered[name]
        except REDIS_ERRORS as error:
            self.logger.debug("This worker could not be unregistered: %s", error)

    def _register(self, name: str, text: bytes, before: bytes) -> None:
        keys = self.keys_of(name)
        args = [keys.base, text, before, REGISTRATION_KEPT_FOR]
        try:
            load("registerWorker-1.lua")(self.client, [keys.workers], args)
        except QueueRefused as error:
            self.logger.debug("Not registered in queue %r: %s", name, error)
        self._registered[name] = text
