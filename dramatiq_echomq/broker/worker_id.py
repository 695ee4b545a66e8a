from __future__ import annotations

import itertools
import os
import socket
from uuid import uuid4


class WorkerId:
    """The id of this process among all workers that there ever were.  Each
    lock token that the process makes begins with it and a colon, so that the
    locks of a dead process can be told from all others.  A forked process has
    another one.
    """

    def __init__(self) -> None:
        self._id = uuid4().hex
        self._calls = itertools.count()

    def __str__(self) -> str:
        return self._id

    def next_call(self) -> str:
        """Return an id for one call that fetches jobs, which begins with the
        process's.  A token is this, a colon and a number.
        """
        return f"{self}:{next(self._calls)}"


def worker_name() -> str:
    """Return what this process is called: in its jobs' `pb`, to BullMQ, in dashboards."""
    return f"{socket.gethostname()}:{os.getpid()}"
