"""What the scripts of the broker reply, as named tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .jobs import FetchedJob

#: What finishing a job comes to.
FINISHED, FAILED_INSTEAD, NOT_OWNED, GONE = 1, 2, 0, -1


class Finished(NamedTuple):
    """What became of a job that was to finish.

    Parameters:
      outcome(int): FINISHED, FAILED_INSTEAD, NOT_OWNED or GONE; None when an
        error kept it from finishing.
      faults(tuple[str, ...]): What went wrong beside it: a parent that could not be
        told, or why the job could not complete, or the error.
    """

    outcome: int | None
    faults: tuple[str, ...]


#: That of a job which ended as Redis was told, and nothing is odd about it.
AS_TOLD = Finished(FINISHED, ())


class Reply(NamedTuple):
    """What a call that finishes and fetches jobs brought.

    Parameters:
      finished(list[Finished]): In the order of the jobs that were to finish.
      jobs(list[FetchedJob]): The jobs that were fetched.
      due_in(int): In how many ms the next delayed job is due, or -1 without one.
      suspects_left(int): How many jobs were skipped because they stalled before.
      crowd(int): How many of those may run beside each other.
      unseen(int): How many jobs wait, when so many were skipped that there may
        be others behind them, else 0.
      limited_for(int): For how many ms the queue's rate limit keeps all jobs
        from being fetched, or 0.
    """

    finished: list[Finished]
    jobs: list[FetchedJob]
    due_in: int
    suspects_left: int
    crowd: int
    unseen: int
    limited_for: int


def reply_from(raw: Sequence[Any]) -> Reply:
    """Decode what ``finishAndFetch-1.lua`` returns."""
    numbers, jobs, *faults = raw
    due_in, suspects_left, crowd, unseen, limited_for, *outcomes = numbers.split()
    finished = [Finished(None if outcome == b"?" else int(outcome), ()) for outcome in outcomes]
    for place, *texts in faults:
        told = tuple(text.decode("utf-8", "backslashreplace") for text in texts)
        finished[place - 1] = finished[place - 1]._replace(faults=told)
    return Reply(
        finished,
        [fetched_job_from(job) for job in jobs],
        int(due_in),
        int(suspects_left),
        int(crowd),
        int(unseen),
        int(limited_for),
    )


def fetched_job_from(text: bytes) -> FetchedJob:
    """Decode a fetched job."""
    lengths, _, values = text.partition(b"\n")
    at, parts = 0, []
    for length in lengths.split():
        parts.append(values[at : at + int(length)])
        at += int(length)
    job_id, data, line, *more = parts
    token, started, stalls, duration, timestamp, name = line.split(b" ", 5)
    return FetchedJob(job_id, token, name, data, started, int(stalls), int(duration), int(timestamp), *more)
