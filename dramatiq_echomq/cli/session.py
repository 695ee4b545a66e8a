"""What most verbs share: the options that say which Redis, and how to answer."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.console import Console

from ..inspection.inspector import QueueInspector
from ..protocol.clients import DEFAULT_URL, client_of, client_with
from ..recovery.checker import StalledChecker
from ..settings import Settings

#: How wide tables are where there is no terminal: other programs want a row on one line.
WIDTH_OF_FILES = 1_000


@dataclasses.dataclass
class Session:
    """The Redis that a verb works on, and the way it answers.

    Parameters:
      client(redis.Redis)
      settings(Settings): As the options and the environment say.
      as_json(bool): Whether to answer in JSON.
    """

    client: Any
    settings: Settings
    as_json: bool

    @functools.cached_property
    def inspector(self) -> QueueInspector:
        return QueueInspector(self.client, prefix=self.settings.prefix)

    @functools.cached_property
    def checker(self) -> StalledChecker:
        settings = self.settings
        return StalledChecker(
            self.client,
            prefix=settings.prefix,
            stalled_interval=settings.stalled_interval,
            max_stalled_count=settings.max_stalled_count,
            batch_size=settings.batch_size,
            max_recovered_share=settings.max_recovered_share,
        )

    @functools.cached_property
    def console(self) -> Console:
        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_OF_FILES
        return Console(file=sys.stdout, width=width, highlight=False)

    def answer(self, data: Any, *lines: Any) -> None:
        """Print data as JSON, or else lines and tables for people."""
        if self.as_json:
            print(json.dumps(plain(data)), flush=True)
            return
        for line in lines:
            self.console.print(line, markup=False, soft_wrap=isinstance(line, str))


def plain(value: Any) -> Any:
    """Return what JSON can say of records."""
    if value is None or isinstance(value, str | int | float):  # most values by far
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return [plain(item) for item in value] if isinstance(value, Iterable) else value


def with_session(*settings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb a :class:`Session`, and the options that make it.

    Parameters:
      *settings(str): Settings of the checks that the verb takes as options.
    """

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(verb)
        def wrapped(url: str | None, prefix: str | None, as_json: bool, **arguments: Any) -> Any:
            chosen = {name: arguments.pop(name) for name in settings}
            client = client_with(client_of(url, "--url"), resending=0)
            session = Session(client, Settings.load(source="option", prefix=prefix, **chosen), as_json)
            try:
                return verb(session, **arguments)
            finally:
                client.close()

        return _with_options(wrapped, settings)

    return decorate


_SETTINGS = {
    "stalled_interval": click.option("--stalled-interval", type=int, metavar="MS", help="Between two checks."),
    "max_stalled_count": click.option(
        "--max-stalled-count", type=int, metavar="N", help="How often a job may stall and come back."
    ),
    "batch_size": click.option("--batch-size", type=int, metavar="N", help="How many jobs one script call looks at."),
    "report_only": click.option("--report-only", is_flag=True, default=None, help="Only say what checks would do."),
}


def _with_options(verb: Callable[..., Any], settings: Iterable[str]) -> Callable[..., Any]:
    options = [
        *(_SETTINGS[name] for name in settings),
        click.option("--url", metavar="URL", help=f"The Redis.  [REDIS_URL; else {DEFAULT_URL}]"),
        click.option("--prefix", metavar="TEXT", help="What all keys begin with.  [DRAMATIQ_ECHOMQ_PREFIX; else emq]"),
        click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs."),
    ]
    for option in reversed(options):
        verb = option(verb)
    return verb


def complete_queue(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """Complete the name of a queue.  Never fails: there may be no Redis."""
    try:
        client = client_of(context.params.get("url"))
        prefix = Settings.load(prefix=context.params.get("prefix")).prefix
        names = QueueInspector(client, prefix=prefix).queue_names()
    except Exception:
        return []
    return [CompletionItem(name) for name in names if name.startswith(start)]


#: The argument of verbs that are about one queue, and of those that are about some.
one_queue = click.argument("queue_name", metavar="QUEUE", shell_complete=complete_queue)
some_queues = click.argument("queue_names", metavar="QUEUE...", nargs=-1, required=True, shell_complete=complete_queue)
any_queues = click.argument("queue_names", metavar="[QUEUE...]", nargs=-1, shell_complete=complete_queue)
