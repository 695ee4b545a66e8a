"""Times, arguments and checks in words that people read."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from ..protocol.job_info import JobInfo
from ..protocol.logtext import ids_text, on_one_line
from ..protocol.records import ActiveJob, StalledCheck

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


def milliseconds_of(iso: str) -> int | None:
    """Return the ms since the epoch of a time in ISO 8601 and UTC, without a Z;
    None for what is no time, or one after the year 9999.
    """
    try:
        return round(datetime.fromisoformat(f"{iso}+00:00").timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None


def waits_for(job: JobInfo | None, now: int) -> str:
    """Say how long a job has waited for a worker: ``5 min 12 s``, or ``at most
    5 min 12 s`` where it is not known since when.
    """
    if job is None or job.waiting_since is None:
        return NOTHING
    time = duration(max(now - job.waiting_since, 0))
    return time if job.waiting_since_is_known else f"at most {time}"


def arguments(job: JobInfo | ActiveJob, length: int = 60) -> str:
    """Show the arguments of a job as a call has them."""
    if job.args is None or job.kwargs is None:
        return "(not readable)"
    parts = [_short(value) for value in job.args]
    parts += [f"{name}={_short(value)}" for name, value in job.kwargs.items()]
    text = on_one_line(", ".join(parts))
    return text if len(text) <= length else text[: length - 1] + "…"


def check_summary(check: StalledCheck, would: bool = False) -> str:
    """Say in a line what a check did, or would do."""
    parts = []
    if check.recovered:
        parts.append(f"{check.recovered} brought back ({ids_text(check.recovered_ids)})")
    if check.failed:
        names = {job.job_id: job.name for job in check.failed_jobs}
        parts.append(f"{check.failed} stalled too often and failed ({ids_text(check.failed_ids, names)})")
    if check.marked:
        parts.append(f"{check.marked} without a lock marked")
    if check.dropped:
        parts.append(f"{check.dropped} finished or gone dropped from active")
    if check.hold:
        parts.append(f"held: {check.hold.would_recover} of {check.hold.active} would be brought back at once")
    parts += [f"job {ids_text([job_id])}: {oddity}" for job_id, oddity in check.oddities]
    return ("would be: " if would and parts else "") + ("; ".join(parts) or "nothing stalled")


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
