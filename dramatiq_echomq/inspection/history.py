"""What a queue has done lately: the jobs that finished, minute by minute, and those that stalled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..protocol import scripts
from ..protocol.keys import QueueKeys, id_to_text
from .words import milliseconds_of

#: How far back finished jobs are counted, and how many events are looked at for stalls.
MINUTES = 60
EVENTS = 1_000

#: How many ms the line in a job's log and the event of the same stall may be apart.
SAME_STALL = 5_000

#: What a stall leaves in the log of its job.
LINE = re.compile(
    r"(?P<at>[\d-]+T[\d:.]+)Z stall \d+ of at most \d+: held by (?P<worker>.*?)"
    r"(?: since (?P<since>[\d-]+T[\d:.]+)Z)?, (?:back to|failed:) .*",
    re.DOTALL,
)


@dataclass(frozen=True)
class Stall:
    """A job that was found without a worker, and what came of it.

    Parameters:
      at(int): When, in ms since the epoch.
      queue_name(str)
      job_id(str)
      reason(str): Why it failed; empty when it went back to wait.
      worker(str): Who held it; empty where that is not known.
      since(int): Since when, in ms since the epoch; None where that is not known.
    """

    at: int
    queue_name: str
    job_id: str
    reason: str
    worker: str
    since: int | None


@dataclass(frozen=True)
class QueueHistory:
    """What a queue has done lately.

    Parameters:
      queue_name(str)
      at(int): When Redis said so, in ms since the epoch.
      completed(tuple[int, ...]): How many jobs completed in each of the last
        60 minutes, the current one last.
      failed(tuple[int, ...]): How many failed.
      is_complete(bool): Whether these are all; else some were not kept.
      stalls(tuple[Stall, ...]): The newest first.
      since(int): How far back stalls were looked for, in ms since the epoch;
        None when there are no events at all.
    """

    queue_name: str
    at: int
    completed: tuple[int, ...]
    failed: tuple[int, ...]
    is_complete: bool
    stalls: tuple[Stall, ...]
    since: int | None


def read_history(client: Any, keys: QueueKeys) -> QueueHistory:
    """Read what a queue has done lately, in one bounded call.  For a queue
    that does not exist, that is nothing.
    """
    args = [keys.base, scripts.TIME, MINUTES, EVENTS]
    reply = scripts.load("describeHistory-1.lua")(client, [keys.meta], args, only_reads=True)
    now, completed, failed, kept, stalls, oldest = reply
    at = int(now)
    return QueueHistory(
        queue_name=keys.queue_name,
        at=at,
        completed=tuple(reversed(completed)),
        failed=tuple(reversed(failed)),
        is_complete=_is_complete(kept[0], at) and (kept[1][0] == b"" or _is_complete(kept[1], at)),
        stalls=tuple(_stall(keys.queue_name, *row) for row in stalls),
        since=_time_of(oldest) if oldest else None,
    )


def _is_complete(kept: tuple[bytes, int], now: int) -> bool:
    """Jobs that finished in these minutes are all known where workers count
    them, or where one is still kept that finished before.
    """
    first, is_counted = kept
    return bool(is_counted) or (first != b"" and float(first) <= now - MINUTES * 60_000)


def _stall(queue_name: str, event_id: bytes, job_id: bytes, reason: bytes, lines: Iterable[bytes]) -> Stall:
    at = _time_of(event_id)
    worker, since = _holder(at, [line.decode("utf-8", "backslashreplace") for line in lines])
    return Stall(at, queue_name, id_to_text(job_id), reason.decode("utf-8", "backslashreplace"), worker, since)


def _holder(at: int, lines: Iterable[str]) -> tuple[str, int | None]:
    matches = [match for match in map(LINE.fullmatch, lines) if match]
    found = [(abs(time - at), match) for match in matches if (time := milliseconds_of(match["at"])) is not None]
    apart, nearest = min(found, key=lambda each: each[0], default=(SAME_STALL + 1, None))
    if nearest is None or apart > SAME_STALL:
        return "", None
    return nearest["worker"], milliseconds_of(nearest["since"] or "")


def _time_of(event_id: bytes) -> int:
    return int(event_id.partition(b"-")[0])
