from __future__ import annotations

import click

from ..inspection.words import NOTHING, arguments, check_summary, duration
from ..protocol.logtext import printable
from ..protocol.records import ActiveJob, StalledCheck
from ..protocol.replies import foreseen_check
from .exits import FOUND, OK
from .session import Session, one_queue, some_queues, with_session
from .tables import table_or_lines

COLUMNS = ("job", "message", "name", "arguments", "worker", "active for", "lock left", "stalls", "verdict")

MEANING = {
    "healthy": "its lock is held",
    "mark": "no lock: the next check marks it",
    "requeue": "stalled: the next check brings it back",
    "fail": "stalled too often, or has no attempts left: the next check fails it",
    "drop": "finished or gone: the next check takes it out of active",
    "copy": "twice in active: the next check takes one out",
    "odd": "no job: it stays until somebody removes it",
}


@click.command()
@one_queue
@with_session("max_stalled_count", "batch_size")
def inspect(session: Session, queue_name: str) -> int:
    """Say of each active job what the next check would do. Writes nothing.

    Exits with 1 when one of them has no lock.
    """
    info = session.inspector.queue(queue_name)
    found = session.checker.inspect(queue_name)
    if found and not session.as_json:
        session.answer(found, table_or_lines(COLUMNS, [_row(job) for job in found]))
    else:
        session.answer(found, f"No job of queue {info.name!r} is active.")
    return OK if all(job.verdict == "healthy" for job in found) else FOUND


def _row(job: ActiveJob) -> list[object]:
    message_id = NOTHING if job.message_id == job.job_id else job.message_id or NOTHING
    lock = "never ends" if job.lock_ttl == -1 else "none" if job.lock_ttl is None else duration(job.lock_ttl)
    cells = [job.job_id, message_id, job.name, arguments(job), job.worker or NOTHING, duration(job.age), lock]
    return [*cells, job.stalls, f"{job.verdict}: {MEANING.get(job.verdict, '')}"]


@click.command()
@some_queues
@click.option("--dry-run", is_flag=True, help="Only say what a check would do.")
@with_session("max_stalled_count", "batch_size")
def check(session: Session, queue_names: tuple[str, ...], dry_run: bool) -> None:
    """Check queues for stalled jobs now, whatever the workers do.

    A job without a lock is marked by the first check, and comes back with the second one if it
    still has none: wait in between for as long as a worker may need to renew a lock, some 15 s.
    """
    for queue_name in queue_names:
        session.inspector.queue(queue_name)
    checks = [_dry_run(session, name) if dry_run else session.checker.check(name) for name in queue_names]
    session.answer(checks, *(f"{printable(check.queue_name)}: {check_summary(check, dry_run)}" for check in checks))


def _dry_run(session: Session, queue_name: str) -> StalledCheck:
    return foreseen_check(queue_name, session.checker.verdicts(queue_name))
