"""The files in which the processes of one machine keep what they export."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

#: Where they are.
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def require_prometheus_client(who: str) -> None:
    """Require the package of Prometheus, without an import of it.

    Raises:
      ImportError: When it is missing.
    """
    if find_spec("prometheus_client") is None:
        raise ImportError(f'{who} needs a package: pip install "dramatiq-echomq[prometheus]"')


def forget_dead_processes(directory: Path) -> None:
    """Remove what processes that are gone had to say about themselves: one
    that was killed could not do it, and its gauges would be shown for ever.
    """
    if sys.platform == "win32":  # where there is no way to ask that does no harm
        return
    for file in directory.glob("gauge_live*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            forget_process(int(pid), directory)


def forget_process(pid: int, directory: Path) -> None:
    """Remove what a process had to say about itself."""
    from prometheus_client import multiprocess

    with contextlib.suppress(FileNotFoundError):  # another worker boots and does the same
        multiprocess.mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
