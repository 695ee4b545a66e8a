"""Queues as plain data: put one into Redis, and read the whole of it back."""

from __future__ import annotations

import random
import re
from typing import Any

import redis

from dramatiq_echomq.protocol.scripts import load

PREFIX = "emq"
NOW = 1_700_000_000_000
DAY = 86_400_000
#: The fields of a job that `put` adds.
FIELDS = {"name": "work", "data": "{}", "opts": "{}", "timestamp": "1"}
#: The counters of a job that came back once.
BACK = {"stc": "1", "atm": "1"}
LIMIT = "job stalled more than allowable limit"
#: What has failed before a test, by how many seconds ago.
EARLIER = {"f30": NOW - 30_000, "f20": NOW - 20_000, "f10": NOW - 10_000}
META = {"version": "echomq:1"}
#: The marker of a queue that wakes a worker.
WOKEN = {"0": 0}
HISTORY_LINE = re.compile(r"[\d-]+T[\d:.]+Z (stall \d+ of at most|retried, back to|promoted before it was due, to) ")
LOCK = {"token": "token-of-its-worker", "ttl": 60_000}


def key(queue: str, name: str | bytes, prefix: str = PREFIX) -> bytes:
    base = f"{prefix}:{queue}:".encode("utf-8", "surrogateescape")
    return base + (name if isinstance(name, bytes) else name.encode())


def put(client: redis.Redis, queue: str = "q", *, prefix: str = PREFIX, jobs=None, locks=(), **structures) -> None:
    """Put a queue into Redis.

    Parameters:
      jobs(dict): Fields by job id; `name`, `data`, `opts` and `timestamp` are added.
      locks(Iterable): The ids that have a lock.
      **structures: By the name of the key (``stalled_check`` for ``stalled-check``): a list for
        a LIST as LRANGE shows it, a set, a dict of numbers for a ZSET, one of texts for a HASH,
        a text for a STRING.
    """
    for job_id, fields in (jobs or {}).items():
        client.hset(key(queue, job_id, prefix), mapping={**FIELDS, **fields})
    for job_id in locks:
        lock = key(queue, job_id, prefix) + b":lock"
        client.set(lock, LOCK["token"], px=LOCK["ttl"])
    for name, value in structures.items():
        target = key(queue, name.replace("_", "-"), prefix)
        if isinstance(value, list):
            client.rpush(target, *value)
        elif isinstance(value, set):
            client.sadd(target, *value)
        elif isinstance(value, str):
            client.set(target, value)
        elif all(isinstance(score, int | float) for score in value.values()):
            client.zadd(target, value)
        else:
            client.hset(target, mapping=value)


def state(client: redis.Redis, queue: str = "q", *, prefix: str = PREFIX, history: bool = False) -> dict:
    """The whole queue as data: the part of each key after ``emq:<queue>:``, with its value.
    Locks are listed under ``locks``; events lose their ids.  What stalls, retries and promotions
    append to the logs of jobs is left out unless ``history`` is set, and in any case which workers there are, and when
    a check was made that took no throttle.
    """
    base = key(queue, "", prefix)
    found: dict = {"locks": set()}
    structures = {}
    for name in client.keys(base.replace(b"[", b"\\[").replace(b"{", b"\\{") + b"*"):
        short = _text(name[len(base) :])
        if short.endswith(":lock"):
            found["locks"].add(short[: -len(":lock")])
        elif short not in ("echomq:workers", "stalled-check:last"):
            structures[short] = name
    found.update(zip(structures, (value for _, value in _values(client, [*structures.values()])), strict=True))
    for short in [] if history else [short for short in found if short.endswith(":logs")]:
        found[short] = [line for line in found[short] if not HISTORY_LINE.match(line)]
        if not found[short]:
            del found[short]
    return found


def as_data(*, jobs=None, locks=(), events=(), **structures) -> dict:
    """What `state()` returns for the queue that `put()` makes of the same arguments."""
    found: dict = {"locks": {_text(job_id) for job_id in locks}}
    for job_id, fields in (jobs or {}).items():
        found[_text(job_id)] = {**FIELDS, **fields}
    for name, value in structures.items():
        short = name.replace("_", "-")
        if isinstance(value, dict):
            found[short] = {_text(member): content for member, content in value.items()}
        elif isinstance(value, str):
            found[short] = value
        else:
            found[short] = type(value)(_text(item) for item in value)
    if events:
        found["events"] = list(events)
    return found


def event(name: str, job_id: str | bytes, /, **fields: str) -> dict:
    """An event as `state()` shows it."""
    return {"event": name, "jobId": _text(job_id), **fields}


def came_back(job_id: str | bytes) -> list[dict]:
    """The events of a job that goes back to wait."""
    return [event("waiting", job_id, prev="active"), event("stalled", job_id)]


def was_failed(job_id: str | bytes, reason: str) -> list[dict]:
    """The events of a job that has stalled too often."""
    return [event("stalled", job_id), event("failed", job_id, prev="active", failedReason=reason)]


def dump(client: redis.Redis) -> dict:
    """The whole database, to see that nothing was written."""
    names = [*client.scan_iter()]
    return {name: (*found, client.pttl(name) > 0) for name, found in zip(names, _values(client, names), strict=True)}


def put_mixture(client, size=60):
    """Jobs of every kind, in any order, with copies."""
    dice = random.Random(7)
    jobs, marks, locks, active, completed = {}, set(), [], [], {}
    for number in range(size):
        job_id = f"job{number}"
        active += [job_id] * dice.choice([1, 1, 1, 1, 3])
        if dice.random() < 0.9:
            jobs[job_id] = dice.choice([{}, {}, {"stc": "1"}, {"priority": "3"}, {"opts": "{"}])
        if dice.random() < 0.6:
            marks.add(job_id)
        if dice.random() < 0.2:
            locks.append(job_id)
        if dice.random() < 0.1:
            completed[job_id] = number
    dice.shuffle(active)
    put(client, active=active, jobs=jobs, stalled=marks | {"gone"}, locks=locks, completed=completed)


def _values(client: redis.Redis, names: list[bytes]) -> list[tuple[bytes, Any]]:
    """Of each key, the type and the value, in two round trips."""
    with client.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.type(name)
        kinds = pipeline.execute()
        for name, kind in zip(names, kinds, strict=True):
            _read(pipeline, name, kind)
        return [(kind, _as_text(kind, value)) for kind, value in zip(kinds, pipeline.execute(), strict=True)]


def _read(pipeline: redis.client.Pipeline, name: bytes, kind: bytes) -> None:
    if kind == b"list":
        pipeline.lrange(name, 0, -1)
    elif kind == b"set":
        pipeline.smembers(name)
    elif kind == b"zset":
        pipeline.zrange(name, 0, -1, withscores=True)
    elif kind == b"hash":
        pipeline.hgetall(name)
    elif kind == b"stream":
        pipeline.xrange(name)
    else:
        pipeline.get(name)


def _as_text(kind: bytes, value: Any) -> Any:
    if kind == b"list":
        return [_text(item) for item in value]
    if kind == b"set":
        return {_text(item) for item in value}
    if kind == b"zset":
        return {_text(item): score for item, score in value}
    if kind == b"hash":
        return {_text(field): _text(item) for field, item in value.items()}
    if kind == b"stream":
        return [{_text(f): _text(v) for f, v in fields.items()} for _, fields in value]
    return None if value is None else _text(value)  # its TTL may have run out meanwhile


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def is_call_of_check(command: tuple) -> bool:
    """Whether a command that was sent is a call of a check, and not one that looks at rights or versions before it."""
    script = load("moveStalledJobsToWait-8.lua")
    return command[0] in ("EVALSHA", "EVAL") and command[1] in (script.sha, script.text)


def commands_so_far(client: redis.Redis) -> dict[str, int]:
    """How often each command was called that consumers use."""
    stats = client.info("commandstats")
    return {name: stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "bzpopmin")}
