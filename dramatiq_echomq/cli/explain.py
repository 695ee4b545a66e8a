from __future__ import annotations

import re

import click

from ..errors import EchoMQError, JobNotFound
from ..inspection.explanation import Explanation
from ..inspection.explanation import explain as tell_story
from ..inspection.inspector import QueueInspector
from ..inspection.words import arguments, moment
from ..protocol.job_info import JobInfo
from ..protocol.logtext import on_one_line, printable
from .session import Session, one_queue, with_session


@click.command()
@one_queue
@click.argument("any_id", metavar="ID")
@with_session("max_stalled_count", "batch_size")
def explain(session: Session, queue_name: str, any_id: str) -> None:
    """Tell the story of one job, and what happens next. Where it is, who held it, each stall.

    An ID is that of a job, or that of a message as Dramatiq's log lines show it: then the story of
    each of its jobs is told, the newest first.
    """
    inspector = session.inspector
    stories = []
    for job in _found(inspector, queue_name, any_id):
        details = inspector.job(queue_name, job.job_id)
        active = session.checker.inspect_job(queue_name, job.job_id) if job.state == "active" else None
        stories.append(tell_story(inspector.queue(queue_name), details, active))
    session.answer(stories, *(line for story in stories for line in _lines(story)))


def _found(inspector: QueueInspector, queue_name: str, any_id: str) -> list[JobInfo]:
    """Find the jobs with an id, or say which other queues have a job with it."""
    try:
        return inspector.find(queue_name, any_id)
    except JobNotFound:
        others = [name for name in inspector.queue_names() if name != queue_name and _has(inspector, name, any_id)]
        raise JobNotFound(queue_name, any_id, others) from None


def _has(inspector: QueueInspector, queue_name: str, job_id: str) -> bool:
    try:
        inspector.job(queue_name, job_id)
    except EchoMQError:  # it has none, is gone by now, or cannot be used
        return False
    return True


def _usual_times(text: str) -> str:
    """Write the times in a text as those in front of it."""
    return re.sub(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z", r"\1 \2", text)


def _lines(story: Explanation) -> list[str]:
    job = story.job
    lines = [f"Job {job.job_id} of queue {job.queue_name}: {on_one_line(job.name)}({arguments(job, 200)})"]
    if job.message_id not in ("", job.job_id):
        lines.append(f"Message: {job.message_id}")
    lines += [f"Now: {story.where}", *(f"Next: {line}" for line in story.next), "Story, in UTC:"]
    lines += [f"  {moment(event.at)}  {_usual_times(on_one_line(event.text))}" for event in story.story]
    lines += [f"  it said: {on_one_line(line)}" for line in story.log]
    if job.stacktrace:
        lines += ["Stack trace:", *("  " + line.expandtabs() for line in job.stacktrace[-1].rstrip().splitlines())]
    return [*map(printable, lines), ""]
