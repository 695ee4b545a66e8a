from __future__ import annotations

import json
import time

import click
from rich.live import Live
from rich.text import Text

from ..inspection.records import QueueInfo
from ..inspection.words import NOTHING, duration, waits_for
from ..protocol.logtext import ids_text, printable
from ..recovery.unknown_queues import queues_of_other_prefixes
from .exits import OK, UNUSABLE
from .session import Session, any_queues, plain, with_session
from .tables import FittingTable, cell_of, table

COLUMNS = (
    *("queue", "state", "wait", "active", "delayed", "failed", "completed"),
    *("oldest waiting", "oldest active", "workers", "checked"),
)


@click.command()
@any_queues
@click.option("--watch", is_flag=True, help="Look again and again, until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks of --watch.",
)
@with_session()
def status(session: Session, queue_names: tuple[str, ...], watch: bool, interval: float) -> int:
    """Show how queues are: all of them, or those named.

    With --watch and --json, each look is a line.
    """

    def look() -> list[QueueInfo]:
        return session.inspector.queues(queue_names or None)

    def shown(queues: list[QueueInfo]) -> FittingTable | str:
        return overview(queues) if queues else nothing_there(session)

    if not watch:
        queues = look()
        problems = [f"{printable(queue.name)}: the script {queue.problem}" for queue in queues if queue.problem]
        session.answer(queues, shown(queues), *problems)
        return UNUSABLE if problems else OK
    try:
        if session.as_json:
            while True:
                print(json.dumps(plain(look())), flush=True)
                time.sleep(interval)
        with Live(shown(look()), console=session.console, auto_refresh=False, screen=False) as live:
            while True:
                time.sleep(interval)
                live.update(shown(look()), refresh=True)
    except KeyboardInterrupt:
        return OK


def overview(queues: list[QueueInfo]) -> FittingTable:
    """Make the table of queues."""
    return table(COLUMNS, [_row(queue) for queue in queues])


def nothing_there(session: Session) -> str:
    others = queues_of_other_prefixes(session.client, session.settings.prefix)
    nothing = ": one is there from its first job on. Or look at --url and --prefix"
    hint = f"; there is {ids_text(others)}, see --prefix" if others else nothing
    return f"There is no queue under the prefix {session.settings.prefix!r} in this database{hint}."


def _row(queue: QueueInfo) -> list[Text]:
    counts = queue.counts
    cells = [
        queue.name,
        state_of(queue),
        counts.waiting,
        counts.active,
        counts.delayed,
        counts.failed,
        counts.completed,
        waits_for(queue.oldest_waiting, queue.at),
        duration(queue.active_for),
        NOTHING if queue.workers is None else len(queue.workers),
        "not lately" if queue.last_check is None else f"{duration(max(queue.at - queue.last_check, 0))} ago",
    ]
    row = [cell_of(cell) for cell in cells]
    row[1].stylize("yellow" if cells[1] != "running" else "green")
    if counts.failed:
        row[5].stylize("red")
    return row


def state_of(queue: QueueInfo) -> str:
    """Say in a word or two whether jobs of a queue can start."""
    if queue.problem:
        return "cannot be used"
    if queue.paused:
        return "paused"
    if queue.lacks_workers:
        return "no worker"
    if queue.rate_limit is not None and queue.rate_limit.wait:
        return f"rate limit, {duration(queue.rate_limit.wait)}"
    if queue.concurrency is not None and queue.counts.active >= queue.concurrency:
        return f"full ({queue.concurrency} at once)"
    return "running"
