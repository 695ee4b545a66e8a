from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

#: All of this process that have something to leave to it when it is forked, and how they do.
_leaving: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def call_in_forked_children(method: Callable[[Any], None], owner: Any) -> None:
    """Call a function for an object in each child that this process forks, for
    as long as the object is there: what it has inherited is the parent's.

    Parameters:
      method(Callable): Takes the object.
      owner(object)
    """
    _leaving[owner] = method


def _leave_to_parent() -> None:
    for owner, method in tuple(_leaving.items()):
        method(owner)


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_leave_to_parent)
