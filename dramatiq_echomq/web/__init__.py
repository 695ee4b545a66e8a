"""A page to look at queues with, and to repair them: a WSGI application."""

from __future__ import annotations

try:
    from .app import make_app
except ModuleNotFoundError as error:
    if (error.name or "").startswith("dramatiq_echomq"):
        raise
    raise ModuleNotFoundError(
        f'{error.name} is not installed here. The page needs it: pip install "dramatiq-echomq[web]"', name=error.name
    ) from None

__all__ = ["make_app"]
