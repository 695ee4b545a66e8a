"""What the replies of the scripts of stalled recovery say."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from .keys import id_to_text
from .records import FailedJob, JobVerdict, StalledCheck, StalledHold

#: What a reply tells of a job that came back beside its id: the length of the id, and how many ms
#: ago a worker fetched the job, or -1.
RECOVERED = struct.Struct(">Iq")


class StalledReply(NamedTuple):
    """One reply of ``moveStalledJobsToWait-8.lua``, in its order."""

    recovered: int
    failed: int
    throttled_for: int
    marked: int
    dropped: int
    recovered_texts: bytes
    failed_jobs: list[list[bytes]]
    oddities: list[bytes]
    next_offset: int
    next_anchor: bytes
    reports: list[bytes]
    remaining: int | bytes
    recovered_facts: bytes
    hold: list[int]

    def recovered_ids(self) -> list[str]:
        """Return the ids of the jobs that came back."""
        ends = [0, *accumulate(length for length, _ in RECOVERED.iter_unpack(self.recovered_facts))]
        text = id_to_text(self.recovered_texts)
        if len(text) == len(self.recovered_texts):  # as it is where all ids are ASCII, and quicker than one by one
            return [text[start:end] for start, end in pairwise(ends)]
        return [id_to_text(self.recovered_texts[start:end]) for start, end in pairwise(ends)]

    def recovered_ages(self) -> list[int | None]:
        """Return how many ms ago a worker had fetched each of them."""
        return [age if age >= 0 else None for _, age in RECOVERED.iter_unpack(self.recovered_facts)]


def check_from(queue_name: str, replies: Sequence[StalledReply]) -> StalledCheck:
    """Return what the calls of one check did together."""
    failed_jobs = tuple(failed_job_from(row) for reply in replies for row in reply.failed_jobs)
    oddities = (
        (id_to_text(job_id), _text(oddity))
        for reply in replies
        for job_id, oddity in zip(reply.oddities[::2], reply.oddities[1::2], strict=True)
    )
    throttled_for = max(reply.throttled_for for reply in replies)
    return StalledCheck(
        queue_name,
        recovered=sum(reply.recovered for reply in replies),
        failed=sum(reply.failed for reply in replies),
        recovered_ids=tuple(job_id for reply in replies for job_id in reply.recovered_ids()),
        failed_ids=tuple(job.job_id for job in failed_jobs),
        marked=sum(reply.marked for reply in replies),
        dropped=sum(reply.dropped for reply in replies),
        skipped=throttled_for >= 0,
        throttled_for=max(throttled_for, 0),
        failed_jobs=failed_jobs,
        oddities=tuple(oddities),
        recovered_ages=tuple(age for reply in replies for age in reply.recovered_ages()),
        hold=StalledHold(hold[0], hold[1], bool(hold[2])) if (hold := replies[0].hold) else None,
    )


def failed_job_from(row: Sequence[bytes]) -> FailedJob:
    """Return a job that a check has failed, as ``moveStalledJobsToWait-8.lua``
    and ``takeUntold-1.lua`` describe it.
    """
    job_id, reason, stalls, worker, name, data = row
    return FailedJob(id_to_text(job_id), _text(reason), int(stalls), _text(worker), _text(name), data)


def foreseen_check(queue_name: str, verdicts: Iterable[JobVerdict]) -> StalledCheck:
    """Return what a check would do.

    Parameters:
      queue_name(str)
      verdicts(Iterable[JobVerdict])
    """
    ids: dict[str, dict[str, None]] = {}
    dropped = 0
    for job_id, verdict, _ in verdicts:
        ids.setdefault(verdict, {})[job_id] = None
        dropped += verdict == "drop"
    return StalledCheck(
        queue_name,
        recovered=len(ids.get("requeue", ())),
        failed=len(ids.get("fail", ())),
        recovered_ids=tuple(ids.get("requeue", ())),
        failed_ids=tuple(ids.get("fail", ())),
        marked=len(ids.get("mark", ())),
        dropped=dropped,
    )


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
