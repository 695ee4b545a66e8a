"""A lock that no interrupt leaves closed, whichever Python this is."""

from __future__ import annotations

import _thread
import sys
import threading
from typing import Any


class Mutex(_thread.RLock):  # type: ignore[misc]
    """A lock that may be entered by threads that others raise exceptions in, as
    TimeLimit and the like do.  Since Python 3.14 such an exception may be raised
    after ``with`` has closed a lock and before it sees to it that it is opened.
    """

    def __enter__(self) -> bool:  # type: ignore[override]
        try:
            return bool(self.acquire())
        except BaseException:
            try:  # noqa: SIM105 - by itself: with each function that is called another exception may come
                self.release()
            except RuntimeError:  # it was not closed
                pass
            raise


def make_mutex() -> Any:
    """Return a lock that can be entered again by the thread that has it.  Up to
    Python 3.13, and under gevent, a usual one will do.
    """
    lock = threading.RLock()
    return Mutex() if sys.version_info >= (3, 14) and type(lock) is _thread.RLock else lock
