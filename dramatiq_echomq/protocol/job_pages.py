"""Looking through the jobs of a queue, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .job_info import LISTS, STATES, JobInfo, job_info
from .keys import QueueKeys, id_to_bytes
from .payload import read_payload
from .scripts import load

#: How many jobs one call looks at, how many ids one call reads, and how many bytes of each job's data are returned.
STEP = 500
IDS_STEP = 1_000
MOST_DATA = 65_536


def read_page(
    client: Any, keys: QueueKeys, state: str, *, offset: int, count: int, text: str = "", newest: bool = False
) -> tuple[list[JobInfo], int, int]:
    """Read jobs of one state with one call.

    Parameters:
      client(redis.Redis)
      keys(QueueKeys)
      state(str)
      offset(int): How many jobs to leave out.
      count(int): How many to look at, or fewer where jobs are large.
      text(str): Return only those with this in their id, name, data or reason.
      newest(bool): Go from those that came last, so that none is missed
        because others leave the state meanwhile.

    Returns:
      tuple[list[JobInfo], int, int]: The jobs, how many were looked at, and
      how many the state has.

    Raises:
      QueueRefused: When the queue's keys are not what they should be.
    """
    order = "newest" if newest else ""
    args = [keys.base, state, offset, count, order, text.encode("utf-8", "surrogateescape"), MOST_DATA]
    total, looked_at, rows = load("listJobs-1.lua")(client, [keys.meta], args, only_reads=True)
    return [job_info(keys.queue_name, state, row) for row in rows], looked_at, total


def search_jobs(client: Any, keys: QueueKeys, state: str, *, text: str = "", newest: bool = False) -> Iterator[JobInfo]:
    """Look through all jobs of one state, in bounded calls."""
    offset = 0
    while True:
        jobs, looked_at, total = read_page(client, keys, state, offset=offset, count=STEP, text=text, newest=newest)
        yield from jobs
        offset += looked_at
        if not looked_at or offset >= total:
            return


def ids_in(client: Any, keys: QueueKeys, state: str) -> Iterator[bytes]:
    """Read all ids of one state in bounded calls, from those that came last
    on: jobs that leave the state meanwhile hide no others.
    """
    command, offset = "LRANGE" if state in LISTS else "ZREVRANGE", 0
    while True:
        bounds = (offset, offset + IDS_STEP - 1)
        ids = client.execute_command(command, id_to_bytes(keys.base + state), *bounds, NEVER_DECODE=True)
        yield from ids
        offset += len(ids)
        if len(ids) < IDS_STEP:
            return


def jobs_of_message(client: Any, keys: QueueKeys, message_id: str, states: Iterable[str] = STATES) -> list[JobInfo]:
    """Find the jobs of one of Dramatiq's messages, by the id that log lines
    show.  There is one for each time that the message was enqueued, retries
    included.  All jobs are looked at, in bounded calls.

    Parameters:
      client(redis.Redis)
      keys(QueueKeys)
      message_id(str)
      states(Iterable[str]): Where to look.

    Returns:
      list[JobInfo]: The jobs, the newest first.
    """
    found = {}
    for state in states:
        for job in search_jobs(client, keys, state, text=message_id, newest=True):
            if _is_of_message(client, keys, job, message_id):
                found[job.job_id] = job  # the last state wins: a job may move on while it is looked for
    return sorted(found.values(), key=lambda job: job.added_at or 0, reverse=True)


def _is_of_message(client: Any, keys: QueueKeys, job: JobInfo, message_id: str) -> bool:
    """Tell whether a job with an id somewhere in it is of the message with that id."""
    data = job.data
    if data is None:
        data = client.execute_command("HGET", keys.job(job.job_id), "data", NEVER_DECODE=True) or b""
    payload = read_payload(data, job.job_id)
    return payload.message_id == message_id or (payload.args is None and id_to_bytes(message_id) in data)
