"""What an operator does to jobs, in bounded calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from ..protocol import scripts
from ..protocol.keys import QueueKeys, id_to_bytes
from .records import ActionResult, JobCounts

#: How many jobs one call is about at most, and how many ids in lists it may have to walk past.
BATCH = 100
LONGEST_WALK = 200_000

WHY_NOT = {
    "gone": "there is no such job in the queue",
    "locked": "a worker runs it: its lock is held",
    "scheduled": "it is the next job of a job scheduler; remove the scheduler instead",
    "children": "it waits for other jobs of its flow; remove them first",
    "odd": "its id is not the id of a job",
    "not-delayed": "it is not delayed",
    "not-failed": "it is not failed",
    "changed": "it has changed meanwhile",
}

#: Gives the outcome for each id, in their order.
Call = Callable[[list[bytes]], list[str]]


def act(
    job_ids: Iterable[str], call: Call, progress: Callable[[int], None] | None = None, *, batch_size: int = BATCH
) -> ActionResult:
    """Do something to jobs, some at a time.

    Parameters:
      job_ids(Iterable[str])
      call(Call): Does it to a few.
      progress(Callable): Called with how many were done or refused so far.
      batch_size(int): How many are a few.
    """
    done, refused, seen = [], {}, 0
    for batch in _batches(job_ids, batch_size):
        for job_id, outcome in zip(batch, call([id_to_bytes(job_id) for job_id in batch]), strict=True):
            if outcome == "done":
                done.append(job_id)
            else:
                refused[job_id] = WHY_NOT.get(outcome, outcome)
        seen += len(batch)
        if progress is not None:
            progress(seen)
    return ActionResult(tuple(done), refused)


def removing(client: Any, keys: QueueKeys) -> Call:
    return lambda ids: _outcomes(client, keys, "removeJobs-1.lua", scripts.TIME, *ids)


def promoting(client: Any, keys: QueueKeys) -> Call:
    return lambda ids: _outcomes(client, keys, "promoteJobs-1.lua", *ids)


def retrying(client: Any, keys: QueueKeys) -> Call:
    retry = scripts.load("retryJobs-1.lua")

    def call(ids: list[bytes]) -> list[str]:
        replies = retry(client, [keys.meta], [keys.base, *ids])
        return ["done" if reply == 1 else "not-failed" for reply in replies]

    return call


def set_paused(client: Any, keys: QueueKeys, paused: bool) -> None:
    scripts.load("setPaused-1.lua")(client, [keys.meta], [keys.base, "paused" if paused else "resumed"])


def _outcomes(client: Any, keys: QueueKeys, script: str, *args: Any) -> list[str]:
    return [
        outcome.decode("utf-8", "replace") for outcome in scripts.load(script)(client, [keys.meta], [keys.base, *args])
    ]


def batch_size_for(counts: JobCounts) -> int:
    """Return how many jobs a call is about that looks for each in the lists of
    a queue, so that Redis is not blocked for long.
    """
    length = counts.wait + counts.paused + counts.active
    return max(1, min(BATCH, LONGEST_WALK // max(length, 1)))


def _batches(job_ids: Iterable[str], size: int) -> Iterator[list[str]]:
    ids = iter(dict.fromkeys(job_ids))
    while batch := list(islice(ids, size)):
        yield batch
