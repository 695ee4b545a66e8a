"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from ..protocol.logtext import on_one_line

#: Of how many rows a table is made: it takes about 2 ms a row, and folds what is wide.
MOST_ROWS = 1_000


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Make a table of texts and numbers; whatever is in them is shown as it is."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    lines = [[cell if isinstance(cell, Text) else cell_of(cell) for cell in row] for row in rows]
    for at, column in enumerate(columns):
        is_number = bool(lines) and all(_is_number(line[at].plain) for line in lines)
        is_id = column in ("queue", "job", "message")  # to be copied
        made.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=is_id)
    for line in lines:
        made.add_row(*line)
    return made


def table_or_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table | str:
    """Make a table, or of many rows lines with the same in them."""
    if len(rows) <= MOST_ROWS:
        return table(columns, rows)
    shown = [columns, *([_text(cell) for cell in row] for row in rows)]
    lines = [""] * len(shown)
    for column in zip(*shown, strict=True):
        width = max(map(cell_len, column))
        is_number = all(map(_is_number, column[1:]))
        for at, cell in enumerate(column):
            gap = " " * (width - cell_len(cell))
            lines[at] += gap + cell + "  " if is_number else cell + gap + "  "
    return "\n".join(line.rstrip() for line in lines)


def cell_of(value: Any) -> Text:
    return Text(_text(value))


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else on_one_line(str(value))


def _is_number(text: str) -> bool:
    return text.replace(",", "").isdigit()
