"""A job as the scripts that look at jobs describe it."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from .keys import id_to_text
from .payload import make_late, with_late_payload

#: The fields of a job that a script returns; the order is that of lua/src/includes/inspect/row.lua.
FIELDS = (
    *("name", "data", "opts", "timestamp", "delay", "priority", "processedOn", "finishedOn", "pb", "ats", "atm", "stc"),
    *("failedReason", "returnvalue", "stacktrace", "parentKey", "rjk", "deid", "defa", "progress"),
)

#: How long each is, or -1 for one that is not there: what stands before all of them.
SIZES = struct.Struct(f">{len(FIELDS)}i")

#: The states that a job can be in, in the order in which it goes through them.
STATES = ("delayed", "waiting-children", "prioritized", "wait", "paused", "active", "completed", "failed")

#: The latest time in ms, of a job that is due later.
LATEST = 2**53

#: Those whose ids are in a LIST.
LISTS = ("wait", "paused", "active")


@with_late_payload
@dataclass(frozen=True)
class JobInfo:
    """One job of a queue.  Times are ms since the epoch, None where there is none.

    Parameters:
      queue_name(str)
      job_id(str)
      state(str): One of ``wait``, ``paused``, ``active``, ``delayed``,
        ``prioritized``, ``waiting-children``, ``completed``, ``failed``; or
        ``nowhere`` for a job that no list of its queue holds, ``missing``
        for an id in a list without a job.
      name(str): The actor.
      message_id(str): The id that Dramatiq's log lines show.  It is that of
        the job for jobs of other programs, and for data that cannot be read;
        empty where the data was left out.
      args(tuple): None where the data cannot be read or was left out.
      kwargs(dict): Likewise.
      data(bytes): As the job holds it; None where it was left out.
      data_size(int): In bytes.
      opts(dict): The job's options; empty where they cannot be read.
      added_at(int): When it was added.
      waiting_since(int): For a job that a worker may fetch, since when it
        waits: when it was added or due, or when a check or a person brought it
        back.  None in other states.
      waiting_since_is_known(bool): False when it may have begun to wait later
        than that, since only the last moment is known at which it did not wait
        yet: say when it was fetched before, for a job that was retried since.
      due_at(int): For a delayed job, when it is due.
      started_at(int): When a worker last fetched it.
      finished_at(int): When it completed or failed.
      priority(int): 1 is the most urgent; 0 for none.
      worker(str): The worker that fetched it last, as far as it said so.
      starts(int): How often it was fetched.
      attempts(int): How many attempts have ended.
      stalls(int): How often it has stalled.
      lock_ttl(int): What is left of its lock in ms, -1 for a lock that never
        ends; None without a lock.
      reason(str): Why it failed, if only at its last attempt, or will be failed.
      deferred_failure(str): Why the worker that fetches it will fail it.
      return_value(str): As JSON.
      stacktrace(tuple[str, ...])
      parent_key(str): The key of its flow parent.
      scheduler(str): The id of the job scheduler that added it.
      deduplication_id(str)
      progress(str): As JSON.
    """

    queue_name: str
    job_id: str
    state: str
    name: str
    message_id: str
    args: tuple[Any, ...] | None
    kwargs: dict[str, Any] | None
    data: bytes | None
    data_size: int
    opts: dict[str, Any]
    added_at: int | None
    waiting_since: int | None
    waiting_since_is_known: bool
    due_at: int | None
    started_at: int | None
    finished_at: int | None
    priority: int
    worker: str
    starts: int
    attempts: int
    stalls: int
    lock_ttl: int | None
    reason: str
    deferred_failure: str
    return_value: str
    stacktrace: tuple[str, ...]
    parent_key: str
    scheduler: str
    deduplication_id: str
    progress: str


def job_info(queue_name: str, state: str, row: list[Any]) -> JobInfo:
    """Make a job's record of the row that a script returned."""
    raw_id, there, lock_ttl, score, data_size, packed, waits = row
    fields = _unpacked(packed)
    data = fields.pop("data", None if data_size else b"")
    texts = {name: value.decode("utf-8", "backslashreplace") for name, value in fields.items()}
    return make_late(
        JobInfo,
        data,
        queue_name=queue_name,
        job_id=id_to_text(raw_id),
        state=state if there == 1 else "missing",
        name=texts.get("name", ""),
        data=data,
        data_size=data_size,
        opts=_object(texts.get("opts", "")),
        added_at=_time(texts.get("timestamp")),
        waiting_since=int(waits[0]) or None if waits else None,
        waiting_since_is_known=bool(waits and waits[1]),
        due_at=_due(float(score)) if state == "delayed" and score else None,
        started_at=_time(texts.get("processedOn")),
        finished_at=_time(texts.get("finishedOn")),
        priority=_number(texts.get("priority")),
        worker=texts.get("pb", ""),
        starts=_number(texts.get("ats")),
        attempts=_number(texts.get("atm")),
        stalls=_number(texts.get("stc")),
        lock_ttl=None if lock_ttl == -2 else lock_ttl,
        reason=texts.get("failedReason") or texts.get("defa", ""),
        deferred_failure=texts.get("defa", ""),
        return_value=texts.get("returnvalue", ""),
        stacktrace=_texts(texts.get("stacktrace", "")),
        parent_key=texts.get("parentKey", ""),
        scheduler=texts.get("rjk", ""),
        deduplication_id=texts.get("deid", ""),
        progress=texts.get("progress", ""),
    )


def _unpacked(packed: bytes) -> dict[str, bytes]:
    """Return the fields that a job has."""
    fields, at = {}, SIZES.size
    for name, size in zip(FIELDS, SIZES.unpack_from(packed), strict=True):
        if size >= 0:
            fields[name] = packed[at : at + size]
            at += size
    return fields


def _due(score: float) -> int:
    """Delays may be of any length, and then the score may be infinite."""
    return int(max(min(score, LATEST * 4096), 0)) // 4096


def _number(text: str | None) -> int:
    try:
        return int(float(text or 0))
    except (ValueError, OverflowError):
        return 0


def _time(text: str | None) -> int | None:
    return _number(text) or None


def _object(text: str) -> dict[str, Any]:
    if text in ("", "{}"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _texts(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return (text,)
    return tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)
