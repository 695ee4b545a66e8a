from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
from rich.progress import Progress, SpinnerColumn, TextColumn

from ..inspection.doctor.doctor import QueueDoctor
from ..inspection.doctor.findings import Finding
from ..inspection.records import ActionResult
from ..protocol.logtext import ids_text
from .exits import FOUND, OK
from .session import Session, one_queue, with_session


@click.command()
@one_queue
@click.option("--repair", is_flag=True, help="Repair what loses no job, after showing it.")
@click.option("--yes", is_flag=True, help="Do not ask before the repair.")
@with_session()
def doctor(session: Session, queue_name: str, repair: bool, yes: bool) -> int:
    """Find what is wrong with a queue and its server. Says what each means, and what to do.

    Writes nothing without --repair. Exits with 1 when something is wrong and stays so.
    """
    if repair and session.as_json and not yes:
        raise click.UsageError("--json cannot ask: say --yes as well.")
    examiner = QueueDoctor(session.client, prefix=session.settings.prefix)
    with _shown(session) as progress:
        findings = examiner.examine(queue_name, progress)
    repaired: dict[int, ActionResult] = {}
    if not session.as_json:
        session.answer(None, *(_lines(findings) or [f"Nothing is wrong with queue {queue_name!r}."]))
    if repair and any(finding.is_repairable for finding in findings):
        if not yes:
            click.confirm("Repair what can be repaired?", abort=True, err=True)
        for number, finding in enumerate(findings):
            if finding.is_repairable:
                with _shown(session) as progress:
                    repaired[number] = examiner.repair(queue_name, finding, partial(progress, finding.kind))
                if not session.as_json:
                    session.answer(None, _repair_told(finding, repaired[number]))
    if session.as_json:
        session.answer([_as_data(finding, repaired.get(number)) for number, finding in enumerate(findings)])
    return OK if len(repaired) == len([finding for finding in findings if finding.kind != "idle-lock"]) else FOUND


def _lines(findings: list[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        exactly = f" ({finding.detail})" if finding.detail else ""
        count = f"{len(finding.job_ids):,} x " if finding.job_ids else ""
        lines.append(f"{count}{finding.kind}: {finding.meaning}{exactly}.")
        if finding.job_ids:
            lines.append(f"    jobs: {ids_text(finding.job_ids)}")
        lines.append(f"    {'--repair' if finding.is_repairable else 'to do'}: {finding.repair}.")
    return lines


def _repair_told(finding: Finding, result: ActionResult) -> str:
    changed = f"; {len(result.refused):,} had changed meanwhile" if result.refused else ""
    count = f" {len(result.done):,}" if finding.job_ids else ""
    return f"{finding.kind}: repaired{count}{changed}"


def _as_data(finding: Finding, result: ActionResult | None) -> dict[str, Any]:
    return {
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
