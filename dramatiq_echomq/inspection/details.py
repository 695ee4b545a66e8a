"""All that there is to say about one job."""

from __future__ import annotations

from typing import Any

from ..protocol.job_info import job_info
from ..protocol.keys import QueueKeys, id_to_bytes
from ..protocol.scripts import load
from .records import JobDetails

#: How many lines of a job's log are read.
LOG_LINES = 1_000


def read_details(client: Any, keys: QueueKeys, job_id: str) -> JobDetails:
    """Read what a queue has of an id: a job without a state is ``nowhere``, an
    id without a job is ``missing``, be it in a list or not.

    Raises:
      QueueRefused: When the queue's keys are not what they should be.
    """
    args = [keys.base, id_to_bytes(job_id), LOG_LINES]
    states, row, marked, log, children, holder = load("describeJob-1.lua")(client, [keys.meta], args, only_reads=True)
    names = tuple(state.decode() for state in states)
    job = job_info(keys.queue_name, names[0] if names else "nowhere", row)
    lines = tuple(line.decode("utf-8", "backslashreplace") for line in log)
    is_registered, missing_since = int(holder) >= 0, int(holder) if int(holder) > 0 else None
    return JobDetails(job, names, bool(marked), lines, children, is_registered, missing_since)
