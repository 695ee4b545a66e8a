"""Which workers are connected: each names its blocking connection after its queue."""

from __future__ import annotations

import base64
from typing import Any

import redis

from .records import WorkerInfo


def connected_workers(client: Any, prefix: str) -> dict[str, list[WorkerInfo]] | None:
    """Return the workers of every queue of a prefix, or None where Redis does
    not say: without the right to ``CLIENT LIST``, or behind a proxy.
    """
    try:
        rows = _clients(client)
    except (redis.ResponseError, redis.exceptions.RedisClusterException):
        return None
    found: dict[str, list[WorkerInfo]] = {}
    for row in rows:
        queue_name, worker_name = _parse(row.get("name", ""), prefix)
        if queue_name:
            worker = WorkerInfo(worker_name, row.get("addr", ""), int(row.get("age", 0)), int(row.get("idle", 0)))
            found.setdefault(queue_name, []).append(worker)
    return found


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
