"""The ``dramatiq-echomq`` command: one file for each verb or group of verbs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

#: What the command imports beyond the needs of the core.
CLI_MODULES = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``dramatiq-echomq`` command.

    Returns:
      int: The exit code.
    """
    missing = [name for name in CLI_MODULES if find_spec(name) is None]
    if missing:
        print(
            f"dramatiq-echomq: the command needs {' and '.join(missing)}, not installed here: "
            'pip install "dramatiq-echomq[cli]"',
            file=sys.stderr,
        )
        return 2

    from .command import run

    return run(arguments)


__all__ = ["main"]
