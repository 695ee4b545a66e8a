"""What is wrong with the jobs of a queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...protocol.keys import QueueKeys, id_to_text
from ..details import read_details
from ..records import JobDetails
from .census import Census, Progress
from .findings import Finding


def examine_jobs(client: Any, keys: QueueKeys, progress: Progress, *, is_checked: bool) -> Iterator[Finding]:
    """Find what is wrong with the jobs of a queue, in bounded steps.  Whatever
    looks wrong is looked at once more, since jobs move on meanwhile.

    Parameters:
      client(redis.Redis)
      keys(QueueKeys)
      progress(Callable): Called with what is looked at and how many were.
      is_checked(bool): Whether somebody sees to the jobs of dead workers.
    """
    census = Census(client, keys, progress)
    census.take()
    there, locked = set(census.jobs), set(census.locks)
    active = [job_id for job_id, places in census.places.items() if places == ["active"]]
    suspects = {
        "no-job": [job_id for job_id in census.places if job_id not in there],
        "nowhere": [job_id for job_id in census.jobs if job_id not in census.places],
        "twice": [job_id for job_id, places in census.places.items() if len(places) > 1],
        "lock": [job_id for job_id in census.locks if "active" not in census.places.get(job_id, ())],
        "mark": [job_id for job_id in census.marks if "active" not in census.places.get(job_id, ())],
        "unchecked": [] if is_checked else [job_id for job_id in active if job_id in there and job_id not in locked],
    }
    for kind, job_ids in suspects.items():
        confirmed: dict[str, list[str]] = {}
        for number, raw_id in enumerate(job_ids, 1):
            job_id = id_to_text(raw_id)
            found = _fault(kind, read_details(client, keys, job_id))
            if found:
                confirmed.setdefault(found, []).append(job_id)
            progress(f"looking again, {kind}", number)
        yield from (Finding(found, job_ids=tuple(ids)) for found, ids in confirmed.items())


def _fault(suspicion: str, details: JobDetails) -> str | None:
    """Return what is wrong with a job of which something is suspected, or None."""
    job, states, is_active = details.job, details.states, "active" in details.states
    if suspicion == "no-job":
        holds = bool(states) and job.state == "missing" and job.lock_ttl is None
    elif suspicion == "nowhere":
        holds = job.state == "nowhere" and job.lock_ttl is None
    elif suspicion == "twice":
        holds = len(states) > 1 and job.state != "missing"
    elif suspicion == "mark":
        holds = details.marked and not is_active
    elif suspicion == "unchecked":
        holds = states == ("active",) and job.state == "active" and job.lock_ttl is None
    else:
        holds = job.lock_ttl is not None and not is_active
        suspicion = "lock" if job.lock_ttl == -1 else "idle-lock"
    return suspicion if holds else None
