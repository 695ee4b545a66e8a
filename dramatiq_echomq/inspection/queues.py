"""Which queues there are, and how each of them is."""

from __future__ import annotations

import re
import time
from dataclasses import fields
from typing import Any

from ..protocol import scripts
from ..protocol.job_info import job_info
from ..protocol.keys import QueueKeys
from .records import JobCounts, QueueInfo, RateLimit
from .workers import Connections

#: How many keys one step of a search for queues looks at.
SCAN_STEP = 1_000


def find_queue_names(client: Any, prefix: str) -> list[str]:
    """Find the queues of a prefix by their ``meta``, which every runtime
    writes with the first job.  All keys are looked at, in bounded steps.
    """
    start, end = f"{prefix}:", ":meta"
    pattern = re.sub(r"([\\*?\[\]])", r"\\\1", start) + "*" + end
    found = set()
    for key in client.scan_iter(match=pattern, count=SCAN_STEP):
        text = key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")
        name = text[len(start) : -len(end)]
        if name and not (":" in name and _is_job(client, key)):
            found.add(name)
    return sorted(found)


def _is_job(client: Any, key: Any) -> bool:
    """Tell whether a key is of a job with an id such as ``repeat:meta``, and of no queue."""
    return client.type(key) not in (b"hash", "hash") or bool(client.hexists(key, "data"))


def describe_queue(client: Any, keys: QueueKeys, prefix: str, connections: Connections | None) -> QueueInfo | None:
    """Return how a queue is, or None for one that does not exist.

    Parameters:
      client(redis.Redis)
      keys(QueueKeys)
      prefix(str)
      connections(Connections): None where Redis does not say.

    Raises:
      QueueRefused: When the queue's keys are not what they should be.
    """
    reply = scripts.load("describeQueue-1.lua")(client, [keys.meta], [keys.base, scripts.TIME], only_reads=True)
    exists, at, meta, counts, limiter, throttle, marked, firsts, actives, next_due, registered = reply
    if not exists:
        return None
    now = int(at)
    paused, concurrency, most, duration, version = meta
    waiting = [job_info(keys.queue_name, state.decode(), row) for state, row in firsts]
    oldest_waiting = min(waiting, key=lambda job: job.waiting_since or now, default=None)
    oldest_active = job_info(keys.queue_name, "active", actives[0][1]) if actives else None
    return QueueInfo(
        name=keys.queue_name,
        prefix=prefix,
        at=now,
        paused=paused is not None,
        concurrency=_number(concurrency),
        rate_limit=_rate_limit(_number(most), _number(duration), *limiter),
        counts=JobCounts(*counts),
        marked=marked,
        oldest_waiting=oldest_waiting,
        waiting_for=_since(oldest_waiting.waiting_since, now) if oldest_waiting else None,
        oldest_active=oldest_active,
        active_for=_since(oldest_active.started_at, now) if oldest_active else None,
        next_due=int(next_due) or None,
        last_check=max(filter(None, map(_time_of_check, throttle[1:])), default=None),
        next_check=throttle[0] if throttle[0] >= 0 else None,
        workers=None if connections is None else connections.workers_of(keys.queue_name, registered),
        version=(version or b"").decode("utf-8", "replace"),
    )


def refused_queue(queue_name: str, prefix: str, problem: str) -> QueueInfo:
    """Return what there is to say of a queue that the script has refused."""
    said: dict[str, Any] = dict.fromkeys(field.name for field in fields(QueueInfo))
    said.update(name=queue_name, prefix=prefix, at=int(time.time() * 1000), problem=problem)
    said.update(counts=JobCounts(*[0] * len(fields(JobCounts))), paused=False, marked=0, version="")
    return QueueInfo(**said)


def _rate_limit(most: int | None, duration: int | None, ttl: int, taken: bytes) -> RateLimit | None:
    """Another runtime's `limiter` may be there without a limit in the meta."""
    count = _number(taken)
    is_full = ttl > 0 and (most is None or (count or 0) >= most)
    if most is None and not is_full:
        return None
    return RateLimit(most, duration, ttl if is_full else 0)


def _time_of_check(note: bytes) -> int | None:
    """What holds the throttle says when it took it: BullMQ writes the time, we
    write it behind the sweep's id.  A check that took none, after a crash or by
    hand, has left its time alone.
    """
    found = re.fullmatch(rb"(?:.*@)?(\d{12,15})", note)
    return int(found.group(1)) if found else None


def _since(time: int | None, now: int) -> int | None:
    return None if time is None else max(now - time, 0)


def _number(value: bytes | None) -> int | None:
    try:
        return int(float(value)) if value else None
    except (ValueError, OverflowError):
        return None
