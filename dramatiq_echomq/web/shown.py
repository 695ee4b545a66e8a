"""How values look in a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from flask import url_for
from markupsafe import Markup, escape

from ..inspection.records import JobCounts, QueueInfo
from ..inspection.words import arguments, duration, moment, waits_for
from ..protocol.job_info import STATES, JobInfo
from ..protocol.logtext import counted, on_one_line
from .addresses import to_address

#: How many characters of a text are sent to a browser.
LONGEST_TEXT = 100_000

#: What a bar gives at least to a state with jobs, in percent.
LEAST_WIDTH = 3.0

_SURROGATES = re.compile("[\ud800-\udfff\x00]")


def printable(value: Any) -> Any:
    """Replace what cannot be encoded, in whatever a template puts out."""
    if isinstance(value, str) and _SURROGATES.search(value):
        shown = _SURROGATES.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", value)
        return Markup(shown) if isinstance(value, Markup) else shown
    return value


def cut(text: str) -> str:
    """Cut a text that is too long for a page."""
    if len(text) <= LONGEST_TEXT:
        return text
    return text[:LONGEST_TEXT] + f"\n… and {len(text) - LONGEST_TEXT:,} more characters, which are not shown here"


def as_text(data: bytes | None) -> str:
    """Show a job's data, whatever bytes it has."""
    return (data or b"").decode("utf-8", "backslashreplace")


def pretty(value: Any) -> str:
    """Write a value as JSON on lines that people read."""
    return cut(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def pretty_json(text: str) -> str:
    """Write JSON on lines that people read, or leave it as it is when it is none."""
    try:
        return pretty(json.loads(text))
    except (ValueError, RecursionError):
        return cut(text)


def with_code(text: str) -> Markup:
    """Mark what stands between backticks up as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def when(ms: int | None, now: int) -> Markup | str:
    """Say how long ago a time was, or how far ahead it is; the time itself shows up beside the pointer."""
    if ms is None:
        return "-"
    distance = f"in {duration(ms - now)}" if ms > now else f"{duration(now - ms)} ago"
    stamp = moment(ms)
    if not stamp.startswith(("1", "2")) or " " not in stamp:
        return stamp
    return Markup('<time datetime="{}Z" title="{} UTC">{}</time>').format(stamp.replace(" ", "T"), stamp, distance)


def bar(counts: JobCounts) -> list[tuple[str, int, float, float]]:
    """Return the parts of a bar: state, number of jobs, left edge and width in
    percent.  Completed jobs have no part in it: how many are kept is a setting.
    """
    numbers = [(state, count) for state, count in numbers_of(counts) if count and state != "completed"]
    total = sum(count for _, count in numbers)
    wide = [(state, count, max(100 * count / total, LEAST_WIDTH)) for state, count in numbers]
    scale = 100 / sum(width for _, _, width in wide) if wide else 1
    parts, left = [], 0.0
    for state, count, width in wide:
        parts.append((state, count, round(left, 2), round(width * scale, 2)))
        left += width * scale
    return parts


def numbers_of(counts: JobCounts) -> list[tuple[str, int]]:
    """Return the states with their numbers of jobs."""
    return [(state, getattr(counts, state.replace("-", "_"))) for state in STATES]


def columns(below: Sequence[int], above: Sequence[int], height: int) -> list[tuple[int, float, float, int, int]]:
    """Return columns of two parts each: place, height of the part below and of
    the one above, and the two numbers.  The highest one is as high as said.
    """
    highest = max((low + high for low, high in zip(below, above, strict=True)), default=0) or 1

    def tall(number: int) -> float:
        return round(max(height * number / highest, 1.5), 2) if number else 0.0

    return [(at, tall(low), tall(high), low, high) for at, (low, high) in enumerate(zip(below, above, strict=True))]


def warnings(queue: QueueInfo) -> Iterator[str]:
    """Say what somebody on call would want to know first."""
    counts, limit = queue.counts, queue.rate_limit
    if queue.paused:
        yield "paused"
    if queue.lacks_workers:
        yield "no worker"
    if queue.marked:
        yield counted(queue.marked, "job") + " without a lock"
    if limit is not None and limit.wait:
        yield "rate limit reached"
    if queue.concurrency is not None and counts.active >= queue.concurrency:
        yield "concurrency reached"


def possible_actions(state: str) -> tuple[str, ...]:
    """Return what may be done to a job in a state."""
    removing = () if state in ("active", "waiting-children", "missing") else ("remove",)
    return {"failed": ("retry",), "delayed": ("promote",)}.get(state, ()) + removing


def call_of(job: JobInfo, length: int = 100) -> str:
    """Show a job as a call of its actor."""
    return f"{on_one_line(job.name) or '(no name)'}({arguments(job, length)})"


def static(filename: str) -> str:
    """Return the address of a file that never changes under it."""
    from .. import __version__

    return url_for("static", filename=filename, v=__version__)


FILTERS = {
    "as_text": as_text,
    "address": to_address,
    "call": call_of,
    "counted": counted,
    "cut": cut,
    "duration": duration,
    "line": on_one_line,
    "moment": moment,
    "pretty": pretty,
    "pretty_json": pretty_json,
    "waits_for": waits_for,
    "with_code": with_code,
}
FUNCTIONS = {
    "bar": bar,
    "columns": columns,
    "numbers_of": numbers_of,
    "possible_actions": possible_actions,
    "static": static,
    "warnings": warnings,
    "when": when,
}
