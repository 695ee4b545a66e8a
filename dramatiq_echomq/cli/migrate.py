from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module

import click
from dramatiq import get_broker
from dramatiq.brokers.redis import RedisBroker
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..broker.broker import EchoMQBroker
from ..migration import QueueMove, move_from_redis_broker, queues_of
from ..protocol.clients import client_of
from .exits import FOUND, MISUNDERSTOOD, OK, Failure
from .session import Session, with_session


@click.command()
@click.argument("queue_names", metavar="[QUEUE...]", nargs=-1)
@click.option("--from-url", metavar="URL", help="The Redis of the old RedisBroker.  [the same]")
@click.option("--namespace", default="dramatiq", show_default=True, help="Of the old RedisBroker.")
@click.option("--app", metavar="MODULE", help="Import it: messages get the options of the actors of its broker.")
@with_session()
def migrate(
    session: Session, queue_names: tuple[str, ...], from_url: str | None, namespace: str, app: str | None
) -> int:
    """Move the messages of a RedisBroker to EchoMQ queues.

    All queues, or those named. Stop the old workers before; one that was killed still counts as alive for a
    minute. When it is interrupted, start it again: nothing is lost or doubled. Exits with 1 when messages were
    left, and says why.
    """
    new = _new_broker(session, app)
    client = session.client if from_url is None else client_of(from_url, "--from-url")
    old = RedisBroker(client=client, namespace=namespace, middleware=[])
    names = list(queue_names) or queues_of(old)
    is_quiet = session.as_json or not session.console.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=session.console, transient=True, disable=is_quiet) as progress:
        tasks = {name: progress.add_task(name, total=None) for name in names}

        def moved(move: QueueMove) -> None:
            progress.update(tasks[move.queue_name], total=move.total, completed=move.moved)

        moves = move_from_redis_broker(old, new, names, progress=moved)
    nothing = f"no messages under the namespace {namespace!r}"
    lines = [_told(move) if move.total or move.moved else f"{move.queue_name}: {nothing}" for move in moves]
    session.answer(moves, *(lines or [f"There are {nothing}."]), *_what_to_do(moves, old))
    return FOUND if any(move.left for move in moves) else OK


def _new_broker(session: Session, app: str | None) -> EchoMQBroker:
    if app is None:
        return EchoMQBroker(client=session.client, prefix=session.settings.prefix, middleware=[])
    sys.path.insert(0, "")
    try:
        import_module(app)
    except ImportError as error:
        raise Failure(f"--app {app} cannot be imported: {error}", MISUNDERSTOOD) from None
    broker = get_broker()
    if not isinstance(broker, EchoMQBroker):
        raise Failure(f"the broker of {app} is a {type(broker).__name__} and no EchoMQBroker", MISUNDERSTOOD)
    return broker


def _told(move: QueueMove) -> str:
    moved = f"{move.queue_name}: {move.waiting:,} waiting, {move.delayed:,} delayed, {move.dead:,} dead moved"
    if not move.left:
        return moved
    late = max(move.left - move.held - move.undecodable, 0)
    kinds = {"held by old workers": move.held, "that cannot be decoded": move.undecodable, "sent meanwhile": late}
    return f"{moved}; {move.left:,} left: " + ", ".join(
        f"{number:,} {kind}" for kind, number in kinds.items() if number
    )


def _what_to_do(moves: list[QueueMove], old: RedisBroker) -> Iterator[str]:
    """Say how to get what was left as well."""
    if any(move.held for move in moves):
        yield (
            "To move what old workers hold, stop them and run this again. A worker that was killed counts as alive "
            f"until it has not been heard of for {old.heartbeat_timeout // 1_000} s."
        )
    if any(move.undecodable for move in moves):
        yield "To decode the others, name the --app that sets the encoder with which they were sent."
