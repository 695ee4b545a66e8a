"""The pages.  None of them writes anything."""

from __future__ import annotations

from typing import Any

from flask import Flask, redirect, render_template, request, url_for
from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Response

from ..errors import QueueNotFound
from ..inspection.explanation import explain
from ..inspection.history import QueueHistory
from ..inspection.records import QueueInfo
from ..protocol.job_info import STATES
from .backing import backing
from .crashes_shown import Strip, crashes_in

#: How many jobs a page has, and how many it looks at for those that have a text.
JOBS_OF_A_PAGE = 50
JOBS_LOOKED_AT = 1_000

#: How many stalls the page of a queue, and the page of all, show.
STALLS_OF_A_QUEUE = 20
STALLS_OF_ALL = 500

#: In which order states are tried for the first look at a queue.
FIRST_LOOK = ("active", "failed", "wait", "prioritized", "paused", "delayed", "waiting-children", "completed")


def register(app: Flask) -> None:
    app.add_url_rule("/", view_func=queues)
    app.add_url_rule("/stalls", view_func=stalls)
    app.add_url_rule("/queues/<text:queue_name>", view_func=queue)
    app.add_url_rule("/queues/<text:queue_name>/find", view_func=find)
    app.add_url_rule("/queues/<text:queue_name>/jobs/<text:job_id>", view_func=job)


def queues() -> str:
    """Show all queues."""
    found = _all_queues()
    return render_template("queues.html", queues=[(info, _history(info)) for info in found])


def stalls() -> str:
    """Show what has stalled lately, in all queues."""
    histories = [history for history in map(_history, _all_queues()) if history is not None]
    found = sorted((stall for history in histories for stall in history.stalls), key=lambda stall: -stall.at)
    strip = Strip(max((history.at for history in histories), default=0), found)
    return render_template(
        "stalls.html",
        crashes=crashes_in(found[:STALLS_OF_ALL]),
        left_out=max(len(found) - STALLS_OF_ALL, 0),
        strip=strip,
        short=[history for history in histories if history.since is not None and history.since > strip.start],
        now=strip.end,
    )


def queue(queue_name: str) -> str:
    """Show one queue, and a page of its jobs in one state."""
    info = backing().inspector.queue(queue_name)
    state = request.args.get("state") or _first_state(info)
    text, offset = request.args.get("text", "").strip(), _whole_number("offset")
    if state not in STATES:
        raise BadRequest(f"There is no state {state!r}. There are {', '.join(STATES)}.")
    limit = JOBS_LOOKED_AT if text else JOBS_OF_A_PAGE
    page = backing().inspector.jobs(info.name, state, offset=offset, limit=limit, text=text)
    history = backing().inspector.history(info.name)
    return render_template(
        "queue.html",
        queue=info,
        state=state,
        text=text,
        offset=offset,
        limit=limit,
        page=page,
        history=history,
        crashes=crashes_in(history.stalls[:STALLS_OF_A_QUEUE]),
    )


def find(queue_name: str) -> Response | str:
    """Lead to the job with an id, or to those of a message with that id."""
    any_id = request.args.get("id", "").strip()
    if not any_id:
        return redirect(url_for("queue", queue_name=queue_name))
    found = backing().inspector.find(queue_name, any_id)
    if len(found) == 1:
        return redirect(url_for("job", queue_name=queue_name, job_id=found[0].job_id))
    info = backing().inspector.queue(queue_name)
    return render_template("found.html", queue=info, message_id=any_id, jobs=found)


def job(queue_name: str, job_id: str) -> str:
    """Show one job."""
    details = backing().inspector.job(queue_name, job_id)
    info = backing().inspector.queue(queue_name)
    is_lockless = details.job.state == "active" and details.job.lock_ttl is None
    active = backing().verdict(queue_name, job_id) if is_lockless else None
    return render_template("job.html", queue=info, details=details, told=explain(info, details, active))


def _all_queues() -> list[QueueInfo]:
    try:
        return backing().inspector.queues(backing().queue_names())
    except QueueNotFound:  # one has gone since its name was found
        return backing().inspector.queues()


def _history(info: QueueInfo) -> QueueHistory | None:
    try:
        return None if info.problem else backing().history(info.name)
    except QueueNotFound:
        return None


def _first_state(info: QueueInfo) -> str:
    counts: dict[str, Any] = vars(info.counts)
    return next((state for state in FIRST_LOOK if counts[state.replace("-", "_")]), FIRST_LOOK[0])


def _whole_number(name: str) -> int:
    written = request.args.get(name, "0")
    if not (written.isascii() and written.isdigit() and len(written) <= 12):
        raise BadRequest(f"The {name} is {written!r}, but it must be a whole number.")
    return int(written)
