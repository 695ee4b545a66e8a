from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from rich.progress import Progress

from ..errors import JobNotFound
from ..inspection.records import ActionResult
from ..protocol.logtext import ids_text
from .exits import FOUND, OK
from .session import Session, one_queue, some_queues, with_session

#: How many jobs are worth a progress bar.
MANY = 1_000


@click.command()
@one_queue
@click.argument("any_ids", metavar="[ID...]", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All failed jobs.")
@click.option("--stalled", is_flag=True, help="The failed jobs that had stalled too often.")
@with_session()
def retry(session: Session, queue_name: str, any_ids: tuple[str, ...], every: bool, stalled: bool) -> int:
    """Make failed jobs available again. Their stalls, attempts and failures are forgotten.

    An ID is that of a job, or that of a message as Dramatiq's log lines show it.
    """
    if bool(any_ids) + every + stalled != 1:
        raise click.UsageError("Name the jobs, or say --all, or --stalled.")
    if any_ids:
        return _act(session, queue_name, any_ids, "failed", "retried", session.inspector.retry)
    job_ids = session.inspector.failed_ids(queue_name, stalled=stalled)
    return _answer(session, _with_progress(session, session.inspector.retry, queue_name, job_ids), "retried", {})


@click.command()
@one_queue
@click.argument("any_ids", metavar="ID...", nargs=-1, required=True)
@with_session()
def remove(session: Session, queue_name: str, any_ids: tuple[str, ...]) -> int:
    """Remove jobs. Whatever their state, but not those that a worker runs.

    An ID is that of a job, or that of a message: then all of its jobs are removed.
    """
    return _act(session, queue_name, any_ids, None, "removed", session.inspector.remove)


@click.command()
@one_queue
@click.argument("any_ids", metavar="ID...", nargs=-1, required=True)
@with_session()
def promote(session: Session, queue_name: str, any_ids: tuple[str, ...]) -> int:
    """Make delayed jobs available now.

    An ID is that of a job, or that of a message as Dramatiq's log lines show it.
    """
    return _act(session, queue_name, any_ids, "delayed", "promoted", session.inspector.promote)


@click.command()
@some_queues
@with_session()
def pause(session: Session, queue_names: tuple[str, ...]) -> None:
    """Pause queues for workers in every language. Jobs that run already go on."""
    _set_paused(session, queue_names, session.inspector.pause, "paused")


@click.command()
@some_queues
@with_session()
def resume(session: Session, queue_names: tuple[str, ...]) -> None:
    """Resume queues that were paused."""
    _set_paused(session, queue_names, session.inspector.resume, "running")


def _set_paused(session: Session, queue_names: Iterable[str], act: Callable[[str], None], state: str) -> None:
    for queue_name in queue_names:
        session.inspector.queue(queue_name)
    for queue_name in queue_names:
        act(queue_name)
    paused = dict.fromkeys(queue_names, state == "paused")
    session.answer(paused, *(f"Queue {name!r} is {state}." for name in queue_names))


def _act(
    session: Session, queue_name: str, any_ids: Iterable[str], state: str | None, done: str, act: Callable[..., Any]
) -> int:
    """Do something to jobs that are named by any of their ids.

    Parameters:
      state(str): Of the jobs of a message, take those in this state if there are any.
    """
    job_ids: list[str] = []
    unknown = {}
    for any_id in dict.fromkeys(any_ids):
        try:
            found = session.inspector.find(queue_name, any_id)
        except JobNotFound as error:
            unknown[any_id] = str(error)
            continue
        job_ids += [job.job_id for job in found if job.state == state] or [job.job_id for job in found]
    return _answer(session, _with_progress(session, act, queue_name, job_ids), done, unknown)


def _with_progress(session: Session, act: Callable[..., ActionResult], queue_name: str, ids: list[str]) -> ActionResult:
    if session.as_json or len(ids) < MANY or not session.console.is_terminal:
        return act(queue_name, ids)
    with Progress(console=session.console, transient=True) as progress:
        task = progress.add_task(queue_name, total=len(ids))
        return act(queue_name, ids, progress=lambda through: progress.update(task, completed=through))


def _answer(session: Session, result: ActionResult, done: str, unknown: dict[str, str]) -> int:
    refused = {**result.refused, **unknown}
    lines = [f"{len(result.done):,} {done}" + (f": {ids_text(result.done)}" if result.done else "")]
    lines += [f"not {done}: {ids_text([job_id])}: {why}" for job_id, why in refused.items()]
    session.answer(ActionResult(result.done, refused), *lines)
    return FOUND if refused else OK
