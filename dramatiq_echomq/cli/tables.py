"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod
from rich.table import Table
from rich.text import Text

from ..inspection.words import NOTHING
from ..protocol.logtext import on_one_line

#: Of how many rows a table is made: it takes about 2 ms a row, and folds what is wide.
MOST_ROWS = 1_000

#: What is wider than this may be folded, and becomes no narrower.
NARROW = 20

#: What is to be copied, and is never folded.
IDS = ("queue", "job", "message")


class FittingTable:
    """A table, or where there is no room for one, a few lines for each row.

    Parameters:
      columns(Sequence[str])
      rows(list[list[Text]])
    """

    def __init__(self, columns: Sequence[str], rows: list[list[Text]]) -> None:
        self.columns = columns
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        widest = [max(map(cell_len, cells)) for cells in self._cells_by_column()]
        least = [
            width if column in IDS else min(width, NARROW) for column, width in zip(self.columns, widest, strict=True)
        ]
        if sum(least) + 2 * (len(least) - 1) <= options.max_width:
            yield self._table(widest, least)
        else:
            for row in self.rows:
                yield from self._lines(row, options.max_width)

    def _cells_by_column(self) -> Iterator[list[str]]:
        for at, column in enumerate(self.columns):
            yield [column, *(row[at].plain for row in self.rows)]

    def _table(self, widest: list[int], least: list[int]) -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold")
        for (column, *cells), width, needed in zip(self._cells_by_column(), widest, least, strict=True):
            justify: JustifyMethod = "right" if cells and all(map(_is_number, cells)) else "left"
            made.add_column(column, justify=justify, overflow="fold", min_width=needed, no_wrap=width == needed)
        for row in self.rows:
            made.add_row(*row)
        return made

    def _lines(self, row: list[Text], width: int) -> Iterator[Text]:
        """Yield a row as lines of names and values, without those that say nothing."""
        line = Text()
        for column, cell in zip(self.columns, row, strict=True):
            if cell.plain in ("", NOTHING):
                continue
            pair = Text.assemble((f"{column}: ", "dim"), cell)
            if line and line.cell_len + 2 + pair.cell_len > width:
                yield line
                line = Text("  ")
            elif line:
                line.append("  ")
            line.append_text(pair)
        yield line


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> FittingTable:
    """Make a table of texts and numbers; whatever is in them is shown as it is."""
    return FittingTable(columns, [[cell if isinstance(cell, Text) else cell_of(cell) for cell in row] for row in rows])


def table_or_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> FittingTable | str:
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
