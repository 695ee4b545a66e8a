from __future__ import annotations

from collections.abc import Iterable
from logging import Logger
from typing import Any

import redis
from dramatiq.logging import get_logger

from ..protocol.keys import QueueKeys
from ..protocol.logtext import on_one_line
from .unknown_queues import warning_of_unknown_queues

#: What is asked of a queue's meta.
META_FIELDS = ("paused", "concurrency", "max", "duration")


class Notices:
    """What a worker says once about the Redis and the queues that it finds.
    Nothing is said of what cannot be read.

    Parameters:
      client(redis.Redis)
      prefix(str)
    """

    def __init__(self, client: Any, prefix: str) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.client = client
        self.prefix = prefix
        self._policy = "noeviction"
        self._looked_at: set[str] = set()

    def warn_of_eviction(self) -> bool:
        """Warn when Redis may remove locks to free memory.

        Returns:
          bool: Whether Redis answered, be it that it may not be asked.
        """
        try:
            policy = self.client.info("memory").get("maxmemory_policy", "noeviction")
        except Exception as error:
            self.logger.debug("Could not read maxmemory-policy: %s", error)
            return isinstance(error, redis.ResponseError)
        known, self._policy = self._policy, policy
        if policy not in ("noeviction", known):
            self.logger.warning(
                "Redis has maxmemory-policy %s and may evict locks: jobs that are running would count as stalled and "
                "run twice. Set it to noeviction.",
                policy,
            )
        return True

    def warn_of_idle_queues(self, queue_names: Iterable[str]) -> None:
        """Warn of queues that are paused, or whose limits let no job start,
        once for each: a worker that has nothing to do would say nothing.
        """
        for queue_name in queue_names:
            if queue_name not in self._looked_at:
                try:
                    meta = self.client.hmget(QueueKeys(queue_name, self.prefix).meta, META_FIELDS)
                except Exception as error:
                    self.logger.debug("Could not read the meta of queue %r: %s", queue_name, error)
                    return
                self._looked_at.add(queue_name)
                self._warn_of_meta(queue_name, dict(zip(META_FIELDS, map(_text, meta), strict=True)))

    def warn_of_unknown_queues(self, queue_names: Iterable[str], *, may_be_new: bool) -> None:
        """Warn of queues whose name or prefix may be mistyped; see
        :func:`.warning_of_unknown_queues`.
        """
        try:
            warning = warning_of_unknown_queues(self.client, self.prefix, queue_names, may_be_new=may_be_new)
        except Exception as error:
            self.logger.debug("Could not look for other queues: %s", error)
            return
        if warning:
            self.logger.warning("%s", warning)

    def _warn_of_meta(self, queue_name: str, meta: dict[str, str | None]) -> None:
        if meta["paused"] is not None:
            self.logger.warning(
                "Queue %r is paused: no worker starts its jobs until it is resumed, say with EchoMQBroker.resume(%r) "
                "or `dramatiq-echomq resume`.",
                queue_name,
                queue_name,
            )
        for name in ("concurrency", "max", "duration"):
            value = meta[name]
            number = _number(value)
            if value is None or (number is not None and number >= 1):
                continue
            if name == "concurrency" and number is not None:
                what = "so no job of it is started. Set the queue's global concurrency to 1 or more, or remove it."
            else:
                what = "which is no limit: it should be a whole number of at least 1. It is not obeyed."
            self.logger.warning("Queue %r has %s %r in its meta, %s", queue_name, name, on_one_line(value), what)


def _text(value: str | bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
