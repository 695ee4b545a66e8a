from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
from rich.progress import Progress, SpinnerColumn, TextColumn

from ..errors import QueueNotFound
from ..inspection.doctor.doctor import QueueDoctor
from ..inspection.doctor.findings import Finding
from ..inspection.records import ActionResult
from ..protocol.logtext import ids_text, printable
from .exits import FOUND, OK
from .session import Session, any_queues, with_session
from .status import nothing_there


@click.command()
@any_queues
@click.option("--repair", is_flag=True, help="Repair what loses no job, after showing it.")
@click.option("--yes", is_flag=True, help="Do not ask before the repair.")
@with_session()
def doctor(session: Session, queue_names: tuple[str, ...], repair: bool, yes: bool) -> int:
    """Find what is wrong with queues and their server. Says what each means, and what to do.

    All queues, or those named. Writes nothing without --repair. Exits with 1 when something is wrong
    and stays so.
    """
    if repair and session.as_json and not yes:
        raise click.UsageError("--json cannot ask: say --yes as well.")
    examiner = QueueDoctor(session.client, prefix=session.settings.prefix)
    names, findings = _examine(session, examiner, queue_names)
    if not session.as_json:
        said = list(_lines(names, findings, tells_which=len(queue_names) != 1))
        session.answer(None, *(said if names else [*said, nothing_there(session)]))
    repaired: dict[int, ActionResult] = {}
    if repair and any(finding.is_repairable for _, finding in findings):
        if not (yes or _is_wanted()):
            click.echo("Nothing was repaired.", err=True)
            return FOUND
        for number, (queue_name, finding) in enumerate(findings):
            if queue_name is not None and finding.is_repairable:
                with _shown(session) as progress:
                    repaired[number] = examiner.repair(queue_name, finding, partial(progress, finding.kind))
                if not session.as_json:
                    session.answer(None, _repair_told(finding, repaired[number], queue_name))
    if session.as_json:
        session.answer([_as_data(*found, repaired.get(number)) for number, found in enumerate(findings)])
    return OK if len(repaired) == len([finding for _, finding in findings if finding.kind != "idle-lock"]) else FOUND


def _examine(
    session: Session, examiner: QueueDoctor, queue_names: Sequence[str]
) -> tuple[list[str], list[tuple[str | None, Finding]]]:
    """Return the queues, and what is wrong: each with its queue, or None for the server."""
    names = []
    findings: list[tuple[str | None, Finding]] = [(None, finding) for finding in examiner.examine_server()]
    with _shown(session) as progress:
        for name in dict.fromkeys(queue_names or session.inspector.queue_names()):
            try:
                findings += [(name, finding) for finding in examiner.examine_queue(name, progress)]
            except QueueNotFound:
                if queue_names:  # else it went while others were looked at
                    raise
            else:
                names.append(name)
    return names, findings


def _lines(names: list[str], findings: list[tuple[str | None, Finding]], *, tells_which: bool) -> Iterator[str]:
    for queue_name, finding in findings:
        whose = f"{printable(queue_name)}: " if tells_which and queue_name is not None else ""
        exactly = f" ({finding.detail})" if finding.detail else ""
        count = f"{len(finding.job_ids):,} x " if finding.job_ids else ""
        yield f"{whose}{count}{finding.kind}: {finding.meaning}{exactly}."
        if finding.job_ids:
            yield f"    jobs: {ids_text(finding.job_ids)}"
        yield f"    {'--repair' if finding.is_repairable else 'to do'}: {finding.repair}."
    troubled = {queue_name for queue_name, _ in findings}
    fine = [name for name in names if name not in troubled]
    if fine and (tells_which or not findings):
        yield f"Nothing is wrong with queue{'s' if len(fine) > 1 else ''} {ids_text(fine)}."


def _is_wanted() -> bool:
    try:
        return click.confirm("Repair what can be repaired?", err=True)
    except click.Abort:  # Ctrl-C, or nobody is there to answer
        return False


def _repair_told(finding: Finding, result: ActionResult, queue_name: str) -> str:
    changed = f"; {len(result.refused):,} had changed meanwhile" if result.refused else ""
    count = f" {len(result.done):,}" if finding.job_ids else ""
    return f"{printable(queue_name)}: {finding.kind}: repaired{count}{changed}"


def _as_data(queue_name: str | None, finding: Finding, result: ActionResult | None) -> dict[str, Any]:
    return {
        "queue": queue_name,
        "kind": finding.kind,
        "meaning": finding.meaning,
        "detail": finding.detail,
        "job_ids": finding.job_ids,
        "repair": finding.repair,
        "is_repairable": finding.is_repairable,
        "repaired": result is not None,
        "result": result,
    }


@contextmanager
def _shown(session: Session) -> Iterator[Callable[[str, int], None]]:
    """Show how far the doctor is, where somebody looks."""
    if session.as_json or not session.console.is_terminal:
        yield lambda _, __: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed:,.0f}"))
    with Progress(*columns, console=session.console, transient=True) as progress:
        task = progress.add_task("looking", total=None)
        yield lambda what, number: progress.update(task, description=what, completed=number)
