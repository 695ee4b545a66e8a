"""What the buttons do.  Each request has come through :mod:`.guard`."""

from __future__ import annotations

from flask import Flask, redirect, request, url_for
from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Response

from ..inspection.records import ActionResult
from ..inspection.words import check_summary
from ..protocol.job_info import STATES
from ..protocol.logtext import counted, ids_text
from .addresses import from_address
from .backing import backing
from .notices import redirect_saying

#: How many bytes a form may have: 1,000 ids of some length.
LONGEST_FORM = 1_000_000

#: How many reasons are told for which something was not done.
REASONS = 3

DONE = {"retry": "back to wait", "remove": "removed", "promote": "made available now"}


def register(app: Flask) -> None:
    app.add_url_rule("/queues/<text:queue_name>", view_func=act_on_queue, methods=["POST"])
    app.add_url_rule("/queues/<text:queue_name>/jobs", view_func=act_on_jobs, methods=["POST"])
    app.add_url_rule("/queues/<text:queue_name>/jobs", "jobs", lambda queue_name: to_queue(queue_name), methods=["GET"])


def act_on_queue(queue_name: str) -> Response:
    """Pause, resume or check a queue."""
    inspector, action = backing().inspector, request.form.get("action", "")
    name = inspector.queue(queue_name).name  # a check must not create what does not exist
    if action == "pause":
        inspector.pause(name)
        said = "The queue is paused, for workers of every kind. Jobs that run already go on."
    elif action == "resume":
        inspector.resume(name)
        said = "The queue is resumed."
    elif action == "check":
        said = f"Checked: {check_summary(backing().checker.check(name))}."
    else:
        raise BadRequest(f"There is no action {action!r} on a queue. There are pause, resume and check.")
    return redirect_saying(url_for("queue", queue_name=name, state=_state()), said)


def act_on_jobs(queue_name: str) -> Response:
    """Retry, remove or promote jobs."""
    inspector, action = backing().inspector, request.form.get("action", "")
    acts = {"retry": inspector.retry, "remove": inspector.remove, "promote": inspector.promote}
    if action not in acts:
        raise BadRequest(f"There is no action {action!r} on jobs. There are {', '.join(acts)}.")
    try:
        ids = [from_address(address) for address in request.form.getlist("id")]
    except ValueError as error:
        raise BadRequest(f"{error}.") from None
    if not ids:
        return redirect_saying(url_for("queue", queue_name=queue_name, state=_state()), "No job was chosen.")
    result = acts[action](queue_name, ids)
    if request.form.get("from") == "job" and not (action == "remove" and result.done):
        target = url_for("job", queue_name=queue_name, job_id=ids[0])
    else:
        target = url_for("queue", queue_name=queue_name, state=_state())
    return redirect_saying(target, outcome(action, result))


def outcome(action: str, result: ActionResult) -> str:
    """Say what came of an action on jobs."""
    said = [f"{counted(len(result.done), 'job')} {DONE[action]}: {ids_text(result.done)}."] if result.done else []
    for job_id, reason in list(result.refused.items())[:REASONS]:
        said.append(f"Not done to {ids_text([job_id])}: {reason}.")
    if len(result.refused) > REASONS:
        said.append(f"Nor to {counted(len(result.refused) - REASONS, 'other job')}.")
    return " ".join(said)


def to_queue(queue_name: str) -> Response:
    return redirect(url_for("queue", queue_name=queue_name))


def _state() -> str | None:
    state = request.form.get("state")
    return state if state in STATES else None
