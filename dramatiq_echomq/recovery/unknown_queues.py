"""Checked queues that do not exist while others do: their name or prefix may be mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import redis

from ..protocol.keys import QueueKeys
from ..protocol.logtext import ids_text

#: What other programs use as prefix: that of EchoMQ and that of BullMQ.
USUAL_PREFIXES = ("emq", "bull")

#: How many SCAN calls look for other queues, of how many keys each.
SCANS, KEYS_PER_SCAN = 20, 1_000

#: How alike two names must be for one to be the other, mistyped (see difflib).
LIKENESS = 0.75


def warning_of_unknown_queues(client: Any, prefix: str, queue_names: Iterable[str], *, may_be_new: bool) -> str | None:
    """Return what to say of queues that nothing was ever added to although
    there are others that they might be, or None.

    Parameters:
      client(redis.Redis)
      prefix(str)
      queue_names(Iterable[str]): The queues that are checked.
      may_be_new(bool): Whether the queues are those of a broker whose first
        message makes a queue: then only one of the same name under another
        prefix, or of a similar name, tells of a mistake.

    Raises:
      redis.RedisError: When Redis cannot be used.
    """
    if isinstance(client, redis.RedisCluster):  # each node would have to be asked
        return None
    unknown = [name for name in queue_names if not _exists(client, name, prefix)]
    if not unknown:
        return None
    prefixes = [other for other in USUAL_PREFIXES if other != prefix]
    found = [f"{other}:{name}" for other in prefixes for name in unknown if _exists(client, name, other)]
    if not found:
        others = _other_queues(client, [prefix, *prefixes])
        own = [name for found_prefix, name in others if found_prefix == prefix]
        similar = [match for name in unknown for match in difflib.get_close_matches(name, own, cutoff=LIKENESS)]
        found = [f"{prefix}:{name}" for name in dict.fromkeys(similar)]
        if not found and not may_be_new:
            found = [":".join(other) for other in others]
    if not found:
        return None
    missing = ids_text(f"{prefix}:{name}" for name in unknown)
    return f"There is no queue {missing} in Redis so far, but there is {ids_text(found)}. Is a name or prefix mistyped?"


def queues_of_other_prefixes(client: Any, prefix: str) -> list[str]:
    """Return queues under the usual prefixes, with these, as far as a few scans find any."""
    if isinstance(client, redis.RedisCluster):
        return []
    return [":".join(other) for other in _other_queues(client, [other for other in USUAL_PREFIXES if other != prefix])]


def _exists(client: Any, queue_name: str, prefix: str) -> bool:
    """Return whether anything was ever added to a queue, or opened it as BullMQ does."""
    keys = QueueKeys(queue_name, prefix)
    waiting = keys.wait, keys.paused, keys.delayed, keys.prioritized
    return bool(client.exists(keys.meta, keys.id, *waiting, keys.active, keys.completed, keys.failed))


def _other_queues(client: Any, prefixes: list[str]) -> list[tuple[str, str]]:
    """Queues under some prefixes, as far as a few scans find any."""
    found, cursor = set(), 0
    for _ in range(SCANS):
        cursor, keys = client.scan(cursor, match="*:meta", count=KEYS_PER_SCAN)
        for key in keys:
            text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
            for prefix in prefixes:
                name = text.removeprefix(f"{prefix}:").removesuffix(":meta")
                if text == f"{prefix}:{name}:meta":
                    found.add((prefix, name))
        if not int(cursor):
            break
    return sorted(found)
