from __future__ import annotations

from typing import NamedTuple

from .group_commit import Part
from .jobs import FetchedJob, Outcome
from .replies import Finished
from .shares import Share


class FinishPart(Part):
    """A job that has ended, to be told to Redis."""

    def __init__(self, job: FetchedJob, outcome: Outcome) -> None:
        super().__init__()
        self.job = job
        self.outcome = outcome
        self.finished: Finished | None = None


class FetchPart(Part):
    """A fetch with a share of the threads."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share


class Arrival(NamedTuple):
    """Jobs that were fetched and that nobody has noted yet.

    Parameters:
      call(str): The id of the call that fetched them.
      jobs(list[FetchedJob])
      fetched_at(float): The monotonic time just before that.
      share(Share): The threads that they were fetched for.
    """

    call: str
    jobs: list[FetchedJob]
    fetched_at: float
    share: Share
