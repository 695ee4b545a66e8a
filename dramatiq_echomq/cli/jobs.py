from __future__ import annotations

from itertools import islice

import click
from rich.table import Table

from ..inspection.words import NOTHING, arguments, duration, moment, waits_for
from ..protocol.job_info import STATES, JobInfo
from .session import Session, one_queue, with_session
from .tables import table_or_lines

#: The states that are listed unless told otherwise: completed jobs are many and fine.
USUAL = tuple(state for state in STATES if state != "completed")


@click.command()
@one_queue
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="May be given again. [all but completed]"
)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Of each state.")
@click.option("--grep", "text", default="", metavar="TEXT", help="Only jobs with it in id, name, data or reason.")
@with_session()
def jobs(session: Session, queue_name: str, states: tuple[str, ...], limit: int, text: str) -> None:
    """List the jobs of a queue: those that come next first, of finished ones the newest first."""
    inspector = session.inspector
    found: list[JobInfo] = []
    left_out = []
    for state in states or USUAL:
        if text:
            found += islice(inspector.search(queue_name, state, text), limit)
            continue
        page = inspector.jobs(queue_name, state, limit=limit)
        found += page.jobs
        if page.next_offset is not None:
            left_out.append(f"{page.total - len(page.jobs):,} more {state}")
    lines: list[Table | str] = [f"There are no such jobs in queue {queue_name!r}."]
    if found:
        lines = [overview(found, inspector.queue(queue_name).at)]
    if left_out:
        lines.append(f"… and {', '.join(left_out)}: see --limit")
    session.answer(found, *lines)


def overview(found: list[JobInfo], now: int) -> Table | str:
    columns = ["state", "job", "message", "name", "arguments", "when", "starts", "stalls", "worker", "reason"]
    return table_or_lines(columns, [_row(job, now) for job in found])


def _row(job: JobInfo, now: int) -> list[object]:
    message_id = NOTHING if job.message_id == job.job_id else job.message_id or NOTHING
    cells = [job.state, job.job_id, message_id, job.name, arguments(job), when(job, now), job.starts, job.stalls]
    return [*cells, job.worker or NOTHING, job.reason or NOTHING]


def when(job: JobInfo, now: int) -> str:
    """Say since when a job is in its state, or until when."""
    if job.state == "delayed" and job.due_at:
        return f"in {duration(max(job.due_at - now, 0))}"
    if job.waiting_since is not None:
        return f"{waits_for(job, now)} ago"
    time = {"active": job.started_at, "completed": job.finished_at, "failed": job.finished_at}.get(job.state)
    return NOTHING if time is None else f"{duration(max(now - time, 0))} ago" if now >= time else moment(time)
