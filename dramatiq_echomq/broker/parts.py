from __future__ import annotations

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
