"""What an action has come to, told once by the page that the browser is sent to after it."""

from __future__ import annotations

import base64
import binascii

from flask import Response, after_this_request, request

from .guard import set_cookie

#: The cookie that carries it from one page to the next.
SAID = "echomq_said"
LONGEST = 1_000


def redirect_saying(address: str, text: str) -> Response:
    """Send the browser to a page that says a text."""
    response = Response(status=303, headers={"Location": address})
    encoded = base64.urlsafe_b64encode(text[:LONGEST].encode("utf-8", "backslashreplace")).decode()
    set_cookie(response, SAID, encoded, max_age=60)
    return response


def notice() -> str:
    """Return what is to be said, and do not say it again."""
    encoded = request.cookies.get(SAID, "")
    if not encoded:
        return ""

    @after_this_request
    def forget(response: Response) -> Response:
        set_cookie(response, SAID, "", max_age=0)
        return response

    try:
        return base64.urlsafe_b64decode(encoded).decode()
    except (binascii.Error, ValueError):
        return ""
