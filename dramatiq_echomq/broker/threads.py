from __future__ import annotations

import functools
import threading
import time
from typing import Any

from dramatiq.threading import is_gevent_active, raise_thread_exception

_gevent_is_active = functools.cache(is_gevent_active)


class Runner:
    """The thread, or under gevent the greenlet, that runs a job."""

    def __init__(self) -> None:
        self.thread: threading.Thread = threading.current_thread()
        self.greenlet: Any = None
        if _gevent_is_active():
            from gevent import getcurrent

            self.greenlet = getcurrent()

    def is_alive(self) -> bool:
        return self.thread.is_alive() if self.greenlet is None else not self.greenlet.dead

    def interrupt(self, exception: type[BaseException]) -> None:
        """Raise an exception in it as soon as it runs Python code again."""
        if self.greenlet is None:
            raise_thread_exception(self.thread.ident, exception)
        else:
            self.greenlet.kill(exception, block=False)


def wait_for_interrupt(exception: type[BaseException]) -> None:
    """Wait, on the thread that was interrupted, for the exception to come, and
    swallow it.
    """
    try:
        for _ in range(100):
            time.sleep(0.001)
    except exception:
        pass
