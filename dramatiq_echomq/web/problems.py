"""Errors as pages, with the right status."""

from __future__ import annotations

import logging
import re

import redis
from flask import Flask, render_template, request
from werkzeug.exceptions import HTTPException

from ..errors import JobNotFound, QueueNotFound, QueueRefused, ServerTooOld, SettingError
from ..protocol.clients import REDIS_ERRORS
from ..protocol.logtext import on_one_line

logger = logging.getLogger("dramatiq_echomq.web")

#: After how many seconds a program that got a 503 may try again.
TRY_AGAIN_AFTER = 5

#: What refusals say that are about the user and not about the queue.
LACK_OF_RIGHTS = ("needs rights: ", " may not be used by this user")

#: How servers say that a script has met a command that its user may not run.
REFUSED_IN_A_SCRIPT = re.compile("permissions to run|can't run this command|can't access at least one of the keys")

Answer = tuple[str, int, dict[str, str]]


def register(app: Flask) -> None:
    app.register_error_handler(QueueNotFound, queue_not_found)
    app.register_error_handler(JobNotFound, lambda error: problem(404, "There is no such job", str(error)))
    app.register_error_handler(QueueRefused, queue_refused)
    app.register_error_handler(ServerTooOld, lambda error: problem(503, "This Redis is too old", str(error)))
    app.register_error_handler(SettingError, lambda error: problem(400, "That cannot be shown", str(error)))
    for kind in REDIS_ERRORS:
        app.register_error_handler(kind, redis_failed)
    app.register_error_handler(HTTPException, http_failed)
    app.register_error_handler(Exception, crashed)


def queue_not_found(error: QueueNotFound) -> Answer:
    return problem(404, "There is no such queue", str(error), similar=error.similar)


def queue_refused(error: QueueRefused) -> Answer:
    said = str(error)
    if any(sign in said for sign in LACK_OF_RIGHTS):
        return problem(403, "This Redis user may not do that", f"The script {said}")
    return problem(409, "This queue cannot be shown", f"EchoMQ 1 {said}")


def redis_failed(error: Exception) -> Answer:
    said = on_one_line(str(error)).rstrip(".")
    if isinstance(error, redis.exceptions.NoPermissionError) or REFUSED_IN_A_SCRIPT.search(said):
        return problem(403, "This Redis user may not do that", f"Redis says: {said}. Allow it with ACL SETUSER.")
    logger.warning("Redis cannot be used: %s: %s", type(error).__name__, said)
    return problem(503, "Redis cannot be used", f"{type(error).__name__}: {said}. This page tries again by itself.")


def http_failed(error: HTTPException) -> Answer | HTTPException:
    if error.code is None or error.code < 400:
        return error  # a redirect
    return problem(error.code, error.name, error.description or "")


def crashed(error: Exception) -> Answer:
    logger.error("The page %s could not be made", on_one_line(request.path), exc_info=error)
    text = "This is a fault of the page. Its log says more; please report it."
    return problem(500, "This page could not be made", text)


def problem(status: int, title: str, text: str, similar: tuple[str, ...] = ()) -> Answer:
    """Answer with a page that says what is wrong."""
    page = render_template("problem.html", status=status, title=title, text=text, similar=similar)
    return page, status, {"Retry-After": str(TRY_AGAIN_AFTER)} if status == 503 else {}
