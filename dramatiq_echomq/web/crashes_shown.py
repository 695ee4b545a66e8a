"""Stalls as people look at them: those of one worker together, and all of a day in a strip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..inspection.history import Stall

#: How many ms the stalls of one crash may be apart.
ONE_CRASH = 60_000

#: What the strip shows: so many columns of so many ms.
COLUMNS = 96
COLUMN = 15 * 60_000


@dataclass(frozen=True)
class Crash:
    """What stalled together since one worker was gone or frozen.

    Parameters:
      at(int): When the last of it was found.
      worker(str): Empty where that is not known.
      stalls(tuple[Stall, ...]): The newest first.
    """

    at: int
    worker: str
    stalls: tuple[Stall, ...]

    @property
    def failed(self) -> int:
        """How many of the jobs had stalled too often."""
        return sum(bool(stall.reason) for stall in self.stalls)


def crashes_in(stalls: Iterable[Stall]) -> list[Crash]:
    """Put the stalls of one worker together.

    Parameters:
      stalls(Iterable[Stall]): The newest first.
    """
    groups: list[list[Stall]] = []
    latest: dict[tuple[str, str], list[Stall]] = {}
    for stall in stalls:
        whose = (stall.worker, "" if stall.worker else stall.queue_name)
        group = latest.get(whose)
        if group is None or group[-1].at - stall.at > ONE_CRASH:
            group = latest[whose] = []
            groups.append(group)
        group.append(stall)
    return [Crash(group[0].at, group[0].worker, tuple(group)) for group in groups]


class Strip:
    """The stalls of the last 24 hours, by quarters of an hour.

    Parameters:
      end(int): Now, in ms since the epoch.
      stalls(Iterable[Stall])
    """

    def __init__(self, end: int, stalls: Iterable[Stall]) -> None:
        self.end = end
        self.start = end - COLUMNS * COLUMN
        self.back = [0] * COLUMNS
        self.failed = [0] * COLUMNS
        for stall in stalls:
            if self.start < stall.at <= end:
                column = COLUMNS - 1 - (end - stall.at) // COLUMN
                (self.failed if stall.reason else self.back)[column] += 1

    @property
    def total(self) -> int:
        return sum(self.back) + sum(self.failed)
