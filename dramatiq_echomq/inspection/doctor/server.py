"""What is wrong with the server, as far as it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import redis

from .findings import Finding

#: The oldest servers that are tested.
OLDEST_REDIS = (6, 2)
OLDEST_VALKEY = (7, 2)

#: How far the clocks may differ, in ms.
CLOCKS_MAY_DIFFER = 2_000


def examine_server(client: Any) -> Iterator[Finding]:
    """Find what is wrong with a server.  What it does not say is not found."""
    try:
        info = _info(client)
        difference = _clock_difference(client)
    except redis.ResponseError:  # no right to ask
        return
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield Finding("eviction", f"maxmemory-policy is {policy}")
    name, version, oldest = "Redis", info.get("redis_version", ""), OLDEST_REDIS
    if "valkey_version" in info:
        name, version, oldest = "Valkey", info["valkey_version"], OLDEST_VALKEY
    numbers = tuple(int(part) for part in str(version).split(".")[:2] if part.isdigit())
    if numbers and numbers < oldest:
        yield Finding("old-server", f"it is {name} {version}")
    if abs(difference) > CLOCKS_MAY_DIFFER:
        ahead = "ahead of" if difference > 0 else "behind"
        yield Finding("clock", f"the clock of Redis is {abs(difference) / 1_000:.1f} s {ahead} the one here")


def _info(client: Any) -> dict[str, Any]:
    if getattr(client, "connection_pool", None) is not None:
        return dict(client.info())
    return dict(client.info(target_nodes=client.get_random_node()))


def _clock_difference(client: Any) -> int:
    """Return by how many ms the clock of Redis is ahead, less what the way there and back may explain."""
    before = time.time()
    if getattr(client, "connection_pool", None) is None:  # a cluster has many clocks
        return 0
    seconds, microseconds = client.time()
    after, of_redis = time.time(), float(seconds) + float(microseconds) / 1_000_000
    return round(max(of_redis - after, 0) * 1_000) or -round(max(before - of_redis, 0) * 1_000)
