from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ..errors import EchoMQError
from ..protocol.keys import id_to_text
from ..protocol.logtext import on_one_line
from .json_text import members_of, object_of


class SchedulerStopped(EchoMQError):
    """A job scheduler whose next run this worker cannot work out."""


class Schedule(NamedTuple):
    """What it takes to know the next job of a job scheduler, as
    ``readScheduler-1.lua`` replies it.
    """

    now: bytes
    due: bytes | None
    opts: bytes | None
    every: bytes | None
    offset: bytes | None
    limit: bytes | None
    end_date: bytes | None
    pattern: bytes | None
    zone: bytes | None


class NextJob(NamedTuple):
    """When the next job of a job scheduler is due in ms, and its opts as JSON."""

    due: int
    opts: bytes


def next_job(scheduler: bytes, schedule: Schedule) -> NextJob | None:
    """Work out the next job of a job scheduler.

    Parameters:
      scheduler(bytes): Its id.
      schedule(Schedule)

    Returns:
      NextJob: None when there is none.

    Raises:
      SchedulerStopped: When it cannot be known when it is due.
    """
    if schedule.due is None:
        return None
    now, opts = int(schedule.now), _members(schedule.opts)
    repeat = _members(opts.get("repeat"))
    count = int(_number(repeat.get("count")) or 0) + 1
    limit, end = _number(schedule.limit), _number(schedule.end_date)
    due = _next_due(schedule, now)
    if due is None or (limit is not None and count > limit) or (end is not None and now > end):
        return None
    repeat["count"] = str(count)
    opts["repeat"] = object_of(repeat)
    opts["prevMillis"] = str(due)
    opts["delay"] = str(max(due - now, 0))
    opts["timestamp"] = str(now)
    opts["jobId"] = json.dumps(f"repeat:{id_to_text(scheduler)}:{due}", ensure_ascii=False)
    return NextJob(due, object_of(opts).encode("utf-8", "surrogateescape"))


def _next_due(schedule: Schedule, now: int) -> int | None:
    """Runs that were missed are left out."""
    every, previous = _number(schedule.every), int(schedule.due or 0)
    if every is None or every < 1:
        if not schedule.pattern:
            return None
        zone = schedule.zone.decode("utf-8", "replace") if schedule.zone else None
        return next_run(schedule.pattern.decode("utf-8", "replace"), zone, max(now, previous))
    due = previous + every
    if due < now:
        due = math.floor(now / every) * every + (_number(schedule.offset) or 0)
        if due <= now:
            due += every
    return math.floor(due)


def _members(text: str | bytes | None) -> dict[str, str]:
    """Return the members of what should be a JSON object; of all else none."""
    try:
        return members_of(text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text or "{}")
    except (ValueError, RecursionError):
        return {}


def _number(text: str | bytes | None) -> float | None:
    """Return a number as digits, or None."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < 2**53 else None


def next_run(pattern: str, time_zone: str | None, after: int) -> int:
    """When a cron pattern is due next.

    Parameters:
      pattern(str): Five fields, or six with the seconds first.
      time_zone(str): The zone in which the pattern counts; UTC without one.
      after(int): The time in ms after which to look.

    Returns:
      int: The time in ms.

    Raises:
      SchedulerStopped: When there is none, or the package for it is missing.
    """
    try:
        from croniter import croniter
    except ImportError:
        raise SchedulerStopped('cron patterns need a package: pip install "dramatiq-echomq[schedulers]"') from None
    try:
        zone = ZoneInfo(time_zone) if time_zone else timezone.utc
        start = datetime.fromtimestamp(after / 1000, zone)
        due = croniter(pattern, start, second_at_beginning=True).get_next(datetime)
    except Exception as error:
        raise SchedulerStopped(f"pattern {pattern!r} in time zone {time_zone!r}: {on_one_line(str(error))}") from None
    return int(due.timestamp() * 1000)
