from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import click

from ..inspection.inspector import QueueInspector
from ..inspection.words import NOTHING, arguments, duration, moment, waits_for
from ..protocol.job_info import STATES, JobInfo
from .session import Session, one_queue, with_session
from .tables import FittingTable, table_or_lines

#: The states that are listed unless told otherwise: completed jobs are many and fine.
USUAL = tuple(state for state in STATES if state != "completed")


class State(click.Choice[str]):
    """A state, also as other programs call it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("wait" if value == "waiting" else value, param, ctx)


@click.command()
@one_queue
@click.option("--state", "states", type=State(STATES), multiple=True, help="May be given again. [all but completed]")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many of each state."
)
@click.option("--grep", "text", default="", metavar="TEXT", help="Only jobs with it in id, name, data or reason.")
@with_session()
def jobs(session: Session, queue_name: str, states: tuple[str, ...], limit: int, text: str) -> None:
    """List the jobs of a queue. Those that come next are first, of finished ones the newest."""
    inspector = session.inspector
    found: list[JobInfo] = []
    left_out = []
    for state in states or USUAL:
        if text:
            found += islice(inspector.search(queue_name, state, text), limit)
            continue
        listed, total = first_jobs(inspector, queue_name, state, limit)
        found += listed
        if total > len(listed):
            left_out.append(f"{total - len(listed):,} more {state}")
    lines: list[FittingTable | str] = []
    if found:
        lines.append(overview(found, inspector.queue(queue_name).at))
    elif not session.as_json:
        lines.append(nothing_there(session, queue_name, states or USUAL))
    if left_out:
        lines.append(f"… and {', '.join(left_out)}: see --limit")
    session.answer(found, *lines)


def first_jobs(inspector: QueueInspector, queue_name: str, state: str, limit: int) -> tuple[list[JobInfo], int]:
    """Return the jobs that come first, and how many there are in all."""
    listed: list[JobInfo] = []
    offset: int | None = 0
    total = 0
    while offset is not None and len(listed) < limit:
        page = inspector.jobs(queue_name, state, offset=offset, limit=limit - len(listed))
        listed += page.jobs
        offset, total = page.next_offset, page.total
    return listed, total


def nothing_there(session: Session, queue_name: str, looked_at: Iterable[str]) -> str:
    """Say that no job was found, and where there are others."""
    totals = {
        state: session.inspector.jobs(queue_name, state, limit=1).total for state in STATES if state not in looked_at
    }
    others = ", ".join(f"{total:,} {state}" for state, total in totals.items() if total)
    there = f" It has {others}: see --state." if others else ""
    return f"There are no such jobs in queue {queue_name!r}.{there}"


def overview(found: list[JobInfo], now: int) -> FittingTable | str:
    columns = ["state", "job", "message", "name", "arguments", "when", "starts", "stalls", "worker", "reason"]
    return table_or_lines(columns, [_row(job, now) for job in found])


def _row(job: JobInfo, now: int) -> list[object]:
    message_id = NOTHING if job.message_id == job.job_id else job.message_id or NOTHING
    cells = [job.state, job.job_id, message_id, job.name, arguments(job), when(job, now), job.starts, job.stalls]
    return [*cells, job.worker or NOTHING, job.reason or NOTHING]


def when(job: JobInfo, now: int) -> str:
    """Say since when a job is in its state, or until when."""
    if job.state == "delayed" and job.due_at:
        return f"in {duration(job.due_at - now)}" if job.due_at > now else "due"
    if job.waiting_since is not None:
        return f"{waits_for(job, now)} ago"
    time = {"active": job.started_at, "completed": job.finished_at, "failed": job.finished_at}.get(job.state)
    return NOTHING if time is None else f"{duration(max(now - time, 0))} ago" if now >= time else moment(time)
