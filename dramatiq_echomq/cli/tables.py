"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..protocol.logtext import on_one_line


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Make a table of texts and numbers; whatever is in them is shown as it is."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    lines = [[cell if isinstance(cell, Text) else cell_of(cell) for cell in row] for row in rows]
    for at, column in enumerate(columns):
        is_number = bool(lines) and all(line[at].plain.replace(",", "").isdigit() for line in lines)
        is_id = column in ("queue", "job", "message")  # to be copied
        made.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=is_id)
    for line in lines:
        made.add_row(*line)
    return made


def cell_of(value: Any) -> Text:
    return Text(f"{value:,}" if isinstance(value, int) else on_one_line(str(value)))
