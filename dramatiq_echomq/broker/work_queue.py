from __future__ import annotations

import threading
from operator import attrgetter
from typing import Any

from ..protocol.mutex import Mutex, make_mutex

#: What the methods of a :class:`queue.Queue` enter.
CONDITIONS = ("not_empty", "not_full", "all_tasks_done")


class EnteredAtOnce(threading.Condition):
    """A condition that is entered and left in one step, as a lock is.  Those
    of Python take several: an interrupt between two of them ends the thread,
    and leaves the lock closed for all others.
    """

    __enter__ = property(attrgetter("_lock.__enter__"))
    __exit__ = property(attrgetter("_lock.__exit__"))


def survive_interrupts(work_queue: Any) -> None:
    """Let no interrupt close the queue from which all threads of a worker take
    their messages.  To be called before the first of them starts.
    """
    mutex = make_mutex()
    if isinstance(mutex, Mutex) and type(getattr(work_queue, "mutex", None)) is type(threading.Lock()):
        work_queue.mutex = mutex
    for name in CONDITIONS:
        if type(getattr(work_queue, name, None)) is threading.Condition:
            setattr(work_queue, name, EnteredAtOnce(work_queue.mutex))
