from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .watch import Change, Job

STYLES = {
    "waiting": "dim",
    "active": "cyan",
    "marked": "yellow",
    "recovered": "magenta",
    "completed": "green",
    "failed": "red",
}


class Screen:
    """Shows the demo as plain lines, one for each thing that happens."""

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        """Tell what the demo does."""
        print(text, flush=True)

    def show(self, jobs: Mapping[str, Job], changes: Iterable[Change]) -> None:
        """Show what happened to the jobs."""
        for change in changes:
            job, note = change.job, ""
            if change.state == "waiting":
                note = f"from {job.producer}"
            elif change.state == "active":
                note = f"in process {job.workers[-1]}"
            elif change.state == "failed":
                note = job.reason
            line = f"{change.seconds:6.1f} s  job {job.number:<3} {job.name:<10} {change.state:<10} {note}"
            print(line.rstrip(), flush=True)

    def print_summary(self, summary: Mapping[str, tuple[int, str]]) -> None:
        """Print the table at the end: counts, and what they count."""
        print()
        for word, (count, meaning) in summary.items():
            print(f"{word:<10} {count:>3}   {meaning}")
        sys.stdout.flush()


class LiveScreen(Screen):
    """Shows the demo in a terminal: a table of the jobs that changes in place."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = Live(Table(), console=console, auto_refresh=False)

    def __enter__(self) -> Screen:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def say(self, text: str) -> None:
        # As a Text: an option such as markup=False would hold for the table below it as well.
        self.console.print(Text(text))

    def show(self, jobs: Mapping[str, Job], changes: Iterable[Change]) -> None:
        if not list(changes):
            return
        # Narrow and low enough for a terminal of 80 by 24.
        table = Table("job", "what", "from", "so far", box=SIMPLE_HEAD, pad_edge=False)
        for job in jobs.values():
            states = job.trail[1:] or job.trail  # all have waited first
            table.add_row(str(job.number), job.name, job.producer, Text(" → ").join(map(_styled, states)))
        self.live.update(table, refresh=True)

    def print_summary(self, summary: Mapping[str, tuple[int, str]]) -> None:
        table = Table("outcome", "jobs", "what it means")
        for word, (count, meaning) in summary.items():
            table.add_row(_styled(word), str(count), meaning)
        self.console.print(table)


def _styled(state: str) -> Text:
    return Text(state, STYLES.get(state, ""))


def make_screen() -> Screen:
    """Return the screen that fits standard output."""
    console = Console()
    if sys.stdout.isatty() and not console.is_dumb_terminal:
        return LiveScreen(console)
    return Screen()
