"""Which workers are connected.  They name the connection on which they wait after its queue.  Those of EchoMQBroker
have another one, named after themselves, which they register in their queues unless ``crash_detection`` is off: it
shows those as well that have not waited yet.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import redis

from ..protocol.registrations import WorkerRegistration, connection_name
from .records import WorkerInfo


@dataclass(frozen=True)
class Connections:
    """The connections that workers have.

    Parameters:
      by_queue(dict[str, list[WorkerInfo]]): Those that are named after a queue.
      by_name(dict[str, WorkerInfo]): The others, by their names.
    """

    by_queue: dict[str, list[WorkerInfo]]
    by_name: dict[str, WorkerInfo]

    @classmethod
    def read(cls, client: Any, prefix: str) -> Connections | None:
        """Return those in the database of a client, for others have queues of
        the same names.  None where Redis does not say: without the right to
        ``CLIENT LIST``, or behind a proxy.
        """
        try:
            rows = _clients(client)
        except (redis.ResponseError, redis.exceptions.RedisClusterException):
            return None
        found, database = cls({}, {}), _database_of(client)
        for row in rows:
            if int(row.get("db", database)) != database:
                continue
            queue_name, worker_name = _parse(row.get("name", ""), prefix)
            worker = WorkerInfo(worker_name, row.get("addr", ""), int(row.get("age", 0)), int(row.get("idle", 0)))
            if queue_name:
                found.by_queue.setdefault(queue_name, []).append(worker)
            else:
                found.by_name[row.get("name", "")] = worker
        return found

    def workers_of(self, queue_name: str, registered: Iterable[bytes]) -> tuple[WorkerInfo, ...]:
        """Return the workers of a queue.

        Parameters:
          queue_name(str)
          registered(Iterable[bytes]): What it says of workers of EchoMQBroker,
            some of which may be gone.
        """
        named = self.by_queue.get(queue_name, [])
        registrations = [found for text in registered if (found := WorkerRegistration.decode(text))]
        own = [
            dataclasses.replace(worker, name=registration.name)
            for registration in registrations
            if (worker := self.by_name.get(connection_name(registration.worker_id)))
            and all(registration.name != each.name for each in named)
        ]
        return (*named, *own)


def _database_of(client: Any) -> int:
    pool = getattr(client, "connection_pool", None)
    return 0 if pool is None else int(pool.connection_kwargs.get("db") or 0)  # a cluster has but one


def _clients(client: Any) -> list[dict[str, str]]:
    if getattr(client, "connection_pool", None) is not None:
        return list(client.client_list())
    replies = client.client_list(target_nodes=client.PRIMARIES)  # a cluster answers by node
    lists = replies.values() if isinstance(replies, dict) else [replies]
    return [row for rows in lists for row in rows]


def _parse(name: str, prefix: str) -> tuple[str, str]:
    """Split ``<prefix>:<base64 of the queue>``, with ``:w:<worker>`` behind it or not."""
    rest = name.removeprefix(f"{prefix}:")
    encoded, _, suffix = rest.partition(":")
    if rest == name or (suffix and not suffix.startswith("w:")):
        return "", ""
    try:
        return base64.b64decode(encoded, validate=True).decode(), suffix[2:]
    except ValueError:
        return "", ""
