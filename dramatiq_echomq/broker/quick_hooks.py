from __future__ import annotations

from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.middleware import MiddlewareError


class QuickHooks(Broker):
    """A broker that calls only those hooks of its middleware that do something.
    Of some 40 for each message, 30 are the empty ones of ``Middleware``: they
    cost a fifth of the time that a worker needs for a message.
    """

    _listeners: tuple[list[Middleware], dict[str, list[Middleware]]] = ([], {})

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        hook = "before_" + signal
        for middleware in self._listening_to(hook):
            try:
                getattr(middleware, hook)(self, *args, **kwargs)
            except MiddlewareError:
                raise
            except Exception:
                self.logger.critical("Unexpected failure in %s of %r.", hook, middleware, exc_info=True)

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        hook = "after_" + signal
        for middleware in reversed(self._listening_to(hook)):
            try:
                getattr(middleware, hook)(self, *args, **kwargs)
            except Exception:
                self.logger.critical("Unexpected failure in %s of %r.", hook, middleware, exc_info=True)

    def _listening_to(self, hook: str) -> list[Middleware]:
        known, by_hook = self._listeners
        if known != self.middleware:
            known, by_hook = self._listeners = [*self.middleware], {}
        if hook not in by_hook:
            by_hook[hook] = [middleware for middleware in known if not _is_empty(middleware, hook)]
        return by_hook[hook]


def _is_empty(middleware: Middleware, hook: str) -> bool:
    """Return whether a hook is the one of ``Middleware``, which does nothing."""
    empty = getattr(Middleware, hook, None)
    return getattr(type(middleware), hook, None) is empty is not None and hook not in getattr(
        middleware, "__dict__", {}
    )
