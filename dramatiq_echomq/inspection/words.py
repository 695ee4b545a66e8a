"""Times and arguments in words that people read."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from ..protocol.job_info import JobInfo
from ..protocol.logtext import on_one_line
from ..protocol.records import ActiveJob

#: What stands where there is nothing to say.
NOTHING = "-"


def duration(ms: int | None) -> str:
    """Say how long ms are: ``350 ms``, ``3.2 s``, ``5 min 12 s``, ``3 h 5 min``, ``2 d 3 h``."""
    if ms is None:
        return NOTHING
    if ms < 1_000:
        return f"{ms} ms"
    seconds = ms / 1_000
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, rest_size, rest_unit in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // rest_size
            return f"{whole // size} {unit}" + (f" {rest} {rest_unit}" if rest else "")
    return f"{whole} s"


def moment(ms: int | None) -> str:
    """Say when ms since the epoch are, in UTC."""
    if ms is None:
        return NOTHING
    try:
        return datetime.fromtimestamp(ms / 1_000, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ms)


def arguments(job: JobInfo | ActiveJob, length: int = 60) -> str:
    """Show the arguments of a job as a call has them."""
    if job.args is None or job.kwargs is None:
        return "(not readable)"
    parts = [_short(value) for value in job.args]
    parts += [f"{name}={_short(value)}" for name, value in job.kwargs.items()]
    text = on_one_line(", ".join(parts))
    return text if len(text) <= length else text[: length - 1] + "…"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
