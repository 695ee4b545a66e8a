"""Who may do what from where: headers that browsers obey, and tokens without which nothing is changed."""

from __future__ import annotations

import hmac
import re
import secrets

from flask import Flask, Response, g, request
from werkzeug.exceptions import BadRequest, Forbidden
from werkzeug.sansio.utils import host_is_trusted

from .backing import backing

#: The cookie that holds a browser's token; forms hold it as well.
TOKEN = "echomq_token"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

READ_ONLY = (
    "This page only shows. To let it change jobs and queues, start it with `dramatiq-echomq web --allow-actions`, or "
    "make it with make_app(actions=True)."
)
FOREIGN = (
    "This form was not sent from a page of here, or the page is old, or your browser keeps no cookies. Nothing was "
    "changed. Load the page anew and try again."
)


UNTRUSTED = (
    "This page may not be asked for as {host!r}. If that is a name of it, say so: `dramatiq-echomq web --trusted-host "
    "NAME`, or make_app(trusted_hosts=[…])."
)


def register(app: Flask) -> None:
    app.before_request(require_trusted_host)
    app.before_request(require_permission)
    app.after_request(add_headers)
    app.jinja_env.globals["token"] = token


def require_trusted_host() -> None:
    """Validate the name under which the page is asked for.  A site that gives
    its own name the address of this page could else read it through the
    browser of who looks at it.

    Raises:
      BadRequest: When it is not trusted.
    """
    trusted = backing().trusted_hosts
    if trusted is not None and not host_is_trusted(request.host, trusted):
        raise BadRequest(UNTRUSTED.format(host=request.host))


def require_permission() -> None:
    """Validate that a request that may change something was allowed and meant.

    The token is in a cookie and in the form, and only a page of ours could
    write it into both: so any number of processes can serve the page, and
    none keeps a session or a secret.  That other sites cannot make a browser
    send the form is what browsers say by themselves, as well.

    Raises:
      Forbidden: When it was not.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    if not backing().actions:
        raise Forbidden(READ_ONLY)
    given, own = request.form.get("token", ""), request.cookies.get(TOKEN, "")
    is_foreign = request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none")
    if is_foreign or not _is_token(own) or not hmac.compare_digest(given.encode(), own.encode()):
        raise Forbidden(FOREIGN)


def token() -> str:
    """Return the token of the browser that asks, for a form."""
    if "token" not in g:
        own = request.cookies.get(TOKEN, "")
        g.token = own if _is_token(own) else secrets.token_urlsafe(32)
    found: str = g.token
    return found


def add_headers(response: Response) -> Response:
    response.headers.update(HEADERS)
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
    if "token" in g and request.cookies.get(TOKEN) != g.token:
        set_cookie(response, TOKEN, g.token)
    return response


def set_cookie(response: Response, name: str, value: str, max_age: int | None = None) -> None:
    """Set a cookie that only pages of this application see, and no script."""
    path = (request.root_path or "") + "/"
    response.set_cookie(
        name, value, max_age=max_age, path=path, secure=request.is_secure, httponly=True, samesite="Strict"
    )


def _is_token(text: str) -> bool:
    return re.fullmatch(r"[\w-]{43}", text, re.ASCII) is not None
