from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes a shell complete words. Verbs, options and names of queues.

    For bash, put into ~/.bashrc:  eval "$(dramatiq-echomq completion bash)"
    """
    from .command import dramatiq_echomq

    completes = get_completion_class(shell)
    assert completes is not None
    click.echo(completes(dramatiq_echomq, {}, "dramatiq-echomq", "_DRAMATIQ_ECHOMQ_COMPLETE").source())
