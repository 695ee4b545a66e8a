from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from .. import __version__
from .exits import FOUND, OK, explained

#: The verbs, and the module of this package in which each is a command named like it.
VERBS = {
    "status": "status",
    "jobs": "jobs",
    "inspect": "checks",
    "explain": "explain",
    "check": "checks",
    "run": "run",
    "retry": "actions",
    "remove": "actions",
    "promote": "actions",
    "pause": "actions",
    "resume": "actions",
    "doctor": "doctor",
    "metrics": "metrics",
    "web": "web",
    "migrate": "migrate",
    "demo": "demo",
    "completion": "completion",
}


class Verbs(click.Group):
    """Loads a verb when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command = getattr(import_module(f".{VERBS[name]}", __package__), name)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            if error.option_name not in ("--url", "--prefix", "--json"):
                raise
            example = "dramatiq-echomq status --url URL --prefix TEXT --json"
            raise click.UsageError(f"{error.option_name} belongs after the command: {example}", context) from None

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if words and not words[0].startswith("-") and words[0] not in VERBS:
            similar = get_close_matches(words[0], VERBS, n=1)
            hint = f" Did you mean {similar[0]}?" if similar else ""
            context.fail(f"There is no command {words[0]!r}.{hint}")
        return super().resolve_command(context, words)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dramatiq-echomq", message="%(prog)s %(version)s")
def dramatiq_echomq() -> None:
    """EchoMQ for Dramatiq: look into queues, and repair them.

    Exit codes: 0 all is well; 1 something was found, or not all could be done; 2 the command was
    misunderstood; 3 there is no such queue or job; 4 Redis cannot be used, or a queue is no EchoMQ 1 queue.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    try:
        with explained():
            outcome = dramatiq_echomq.main(
                None if arguments is None else list(arguments), prog_name="dramatiq-echomq", standalone_mode=False
            )
        return outcome if isinstance(outcome, int) else OK
    except click.exceptions.Abort:
        return FOUND
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # Whoever read the output is gone: what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
