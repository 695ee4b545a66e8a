"""Active jobs, as the reports of ``moveStalledJobsToWait-8.lua`` describe them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from .keys import id_to_text
from .payload import make_late
from .records import ActiveJob, JobVerdict

#: What stands before the id, name, worker and data of a job: how long they are; the TTL of its lock, stalls, attempts,
#: start and age; whether it is marked, the verdict, the verdict once marked, and whether its data was left out.
JOB = struct.Struct(">4I5q4B")

#: What stands before the id of a job without a lock: how long that is, the verdict, and the verdict once marked.
VERDICT = struct.Struct(">I2B")

#: In the order of CODES in lua/src/includes/stalled/report.lua.
VERDICTS = ("healthy", "mark", "requeue", "fail", "drop", "copy", "odd")
COPY = VERDICTS.index("copy")


class Copies:
    """Tells the second id of a job that leaves ``active`` from the first, as a
    check does: a call that reports sees only the ids of its own batch.
    """

    #: The verdicts with which a job leaves.
    LEAVING = (VERDICTS.index("requeue"), VERDICTS.index("fail"))

    def __init__(self) -> None:
        self._leaving: set[bytes] = set()

    def has(self, raw_id: bytes) -> bool:
        """Tell whether a job that leaves is a copy of one before it."""
        is_copy = raw_id in self._leaving
        self._leaving.add(raw_id)
        return is_copy


def read_jobs(reports: Iterable[bytes]) -> list[ActiveJob]:
    """Read the reports in the mode ``report``."""
    jobs, copies = [], Copies()
    for report in reports:
        at = 0
        while at < len(report):
            numbers = JOB.unpack_from(report, at)
            id_at = at + JOB.size
            name_at = id_at + numbers[0]
            worker_at = name_at + numbers[1]
            data_at = worker_at + numbers[2]
            at = data_at + numbers[3]
            _, _, _, _, lock_ttl, stalls, attempts, started_at, age, marked, verdict, later, is_large = numbers
            raw_id = report[id_at:name_at]
            if verdict in Copies.LEAVING and copies.has(raw_id):
                verdict = later = COPY
            job = make_late(
                ActiveJob,
                None if is_large else report[data_at:at],
                job_id=id_to_text(raw_id),
                name=report[name_at:worker_at].decode("utf-8", "backslashreplace"),
                worker=report[worker_at:data_at].decode("utf-8", "backslashreplace"),
                lock_ttl=None if lock_ttl == -2 else lock_ttl,
                marked=marked == 1,
                stalls=stalls,
                attempts=attempts,
                verdict=VERDICTS[verdict],
                verdict_once_marked=VERDICTS[later],
                started_at=None if started_at < 0 else started_at,
                age=None if age < 0 else age,
            )
            jobs.append(job)
    return jobs


def read_verdicts(reports: Iterable[bytes]) -> list[JobVerdict]:
    """Read the reports in the mode ``verdicts``."""
    found, copies = [], Copies()
    for report in reports:
        at = 0
        while at < len(report):
            id_size, verdict, later = VERDICT.unpack_from(report, at)
            id_at = at + VERDICT.size
            at = id_at + id_size
            raw_id = report[id_at:at]
            if verdict in Copies.LEAVING and copies.has(raw_id):
                verdict = later = COPY
            found.append(JobVerdict(id_to_text(raw_id), VERDICTS[verdict], VERDICTS[later]))
    return found
