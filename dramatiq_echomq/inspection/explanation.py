"""The story of one job: where it is, what happened to it, and what happens next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from ..protocol.job_info import JobInfo
from ..protocol.payload import retry_in
from ..protocol.records import ActiveJob
from ..settings import Settings
from .records import JobDetails, QueueInfo
from .words import duration, milliseconds_of, moment, waits_for

#: A line that a stall, a retry or a promotion has left in the log of its job.
HISTORY_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z ((?:stall|retried|promoted)\b.*)")

RUN_A_CHECKER = "run workers with StalledCheckerMiddleware, or `dramatiq-echomq run`"


@dataclass(frozen=True)
class StoryEvent:
    """Something that happened to a job.

    Parameters:
      at(int): When, in ms since the epoch.
      text(str): What.
    """

    at: int
    text: str


@dataclass(frozen=True)
class Explanation:
    """The story of a job.

    Parameters:
      job(JobInfo)
      where(str): Where it is now.
      next(tuple[str, ...]): What happens next and when, and what may be done.
      story(tuple[StoryEvent, ...]): What happened, the oldest first.
      log(tuple[str, ...]): What the actor has logged.
    """

    job: JobInfo
    where: str
    next: tuple[str, ...]
    story: tuple[StoryEvent, ...]
    log: tuple[str, ...]


def explain(queue: QueueInfo, details: JobDetails, active: ActiveJob | None = None) -> Explanation:
    """Tell the story of a job.

    Parameters:
      queue(QueueInfo): The job's queue.
      details(JobDetails)
      active(ActiveJob): For an active job, what the next check would do to it.
    """
    history, log = _history_of(details)
    # Of what is of the same ms, a stall comes before the fetch or the failure that follows from it.
    was_promoted = any(event.text.startswith("promoted") for event in history)
    added, later = _beginning_of(details.job, queue.at, was_promoted), _end_of(details.job)
    story = tuple(sorted([*added, *history, *later], key=lambda event: event.at))
    upcoming = tuple(_what_next(queue, details, active))
    return Explanation(details.job, _where(queue, details), upcoming, story, log)


def _history_of(details: JobDetails) -> tuple[list[StoryEvent], tuple[str, ...]]:
    history, log = [], []
    for line in details.log:
        found = HISTORY_LINE.fullmatch(line)
        at = milliseconds_of(found.group(1)) if found else None
        if found and at is not None:
            history.append(StoryEvent(at, found.group(2)))
        else:
            log.append(line)
    return history, tuple(log)


def _beginning_of(job: JobInfo, now: int, was_promoted: bool) -> Iterator[StoryEvent]:
    if job.added_at:
        origin = f" by job scheduler {job.scheduler!r}" if job.scheduler else ""
        origin += f" as a child of {job.parent_key}" if job.parent_key else ""
        number, error = retry_in(job.data)
        origin += f" as retry {number} of its message: the attempt before it raised {error}" if number else ""
        yield StoryEvent(job.added_at, f"added{origin}")
        delay = job.opts.get("delay")
        due = job.added_at + int(delay) if isinstance(delay, int | float) and isfinite(delay) else 0
        was_early = was_promoted or (job.starts <= 1 and job.started_at is not None and job.started_at < due)
        if job.added_at < due <= now and job.state != "delayed" and not was_early:
            yield StoryEvent(due, "due, after a delay")


def _end_of(job: JobInfo) -> Iterator[StoryEvent]:
    if job.started_at:
        count = f" (for the {_ordinal(job.starts)} time)" if job.starts > 1 else ""
        yield StoryEvent(job.started_at, f"fetched by {job.worker or 'a worker without a name'}{count}")
    if job.finished_at and job.state == "failed":
        yield StoryEvent(job.finished_at, f"failed: {job.reason}")
    elif job.finished_at:
        yield StoryEvent(job.finished_at, "completed")


def _where(queue: QueueInfo, details: JobDetails) -> str:
    job, now = details.job, queue.at
    if len(details.states) > 1:
        return f"in {' and '.join(details.states)} at once, which should not be"
    time = {"active": job.started_at, "completed": job.finished_at, "failed": job.finished_at}.get(job.state)
    if job.waiting_since is not None:
        return f"in {job.state}, waits for {waits_for(job, now)}"
    ago = f" for {duration(now - time)}" if time is not None and now >= time else ""
    return {
        "active": f"active{ago}, held by {job.worker or 'a worker without a name'}",
        "nowhere": "nowhere: its data is there, but no list or set of the queue has it",
        "missing": f"in {details.states[0] if details.states else 'a list'}, but without data: the job itself is gone",
    }.get(job.state, f"in {job.state}{ago}")


def _what_next(queue: QueueInfo, details: JobDetails, active: ActiveJob | None) -> Iterator[str]:
    job, name = details.job, queue.name
    if len(details.states) > 1 or job.state == "nowhere":
        yield f"Nothing by itself. `dramatiq-echomq doctor {name}` says what can be done."
    elif job.state == "missing":
        yield "The next worker or check that comes to it drops it. Nothing can be run without its data."
    elif job.state == "active":
        yield from _next_of_active(queue, details, active)
    elif job.state == "delayed":
        yield _when_due(job, queue.at)
        yield from _obstacles(queue)
    elif job.state == "waiting-children":
        yield f"It waits for other jobs of its flow: {details.children_left} are left."
    elif job.state == "failed":
        yield f"Nothing. To run it again: `dramatiq-echomq retry {name} {job.job_id}`."
    elif job.state == "completed":
        yield "Nothing."
    else:
        obstacles = list(_obstacles(queue))
        yield from obstacles or [_next_fetch(job)]
    if job.state not in ("completed", "failed") and job.deferred_failure:
        yield f"The worker that fetches it fails it: {job.deferred_failure}."


def _when_due(job: JobInfo, now: int) -> str:
    due = job.due_at or 0
    if due > now:
        return f"It is due at {moment(due)} UTC, in {duration(due - now)}."
    return f"It has been due for {duration(now - due)}, since {moment(due)} UTC, and waits for a worker to look."


def _next_fetch(job: JobInfo) -> str:
    """A worker process of EchoMQBroker runs one job at a time of those that have stalled before."""
    if job.stalls:
        return (
            "It has stalled before: the next worker that is free, and has no job before it, fetches it if it runs no "
            "other such job, or if many of them wait."
        )
    return "The next worker that is free, and has no job before it, fetches it."


def _obstacles(queue: QueueInfo) -> Iterator[str]:
    """Say what keeps the jobs of a queue from being fetched."""
    limit = queue.rate_limit
    if queue.paused:
        yield f"The queue is paused: nothing is fetched until `dramatiq-echomq resume {queue.name}`."
    if queue.workers == ():
        yield "No worker of this queue is connected, unless one does not name its connection as BullMQ does."
    if queue.concurrency is not None and queue.counts.active >= queue.concurrency:
        yield f"As many jobs are active as the queue allows ({queue.concurrency}): one must end first."
    if limit is not None and limit.wait:
        yield f"The rate limit is reached: the next job may start in {duration(limit.wait)}."


def _next_of_active(queue: QueueInfo, details: JobDetails, active: ActiveJob | None) -> Iterator[str]:
    job = details.job
    if job.lock_ttl == -1:
        yield "Its lock never ends, so it will never count as stalled. Only its worker or a person can end it."
    elif job.lock_ttl is not None:
        yield f"Its lock is held, and ends in {duration(job.lock_ttl)} unless its worker renews it."
        yield from _if_worker_died(queue, details)
    else:
        verdict = active.verdict if active else "mark"
        fate = _fate(active.verdict_once_marked if active else "")
        if verdict == "mark":
            yield f"No lock: its worker is dead or frozen. The next check marks it; the one after {fate}."
        else:
            yield f"No lock: its worker is dead or frozen. The next check {_fate(verdict)}."
        yield _next_check(queue)


def _if_worker_died(queue: QueueInfo, details: JobDetails) -> Iterator[str]:
    """Say how soon a job is back whose worker dies while it holds the lock."""
    grace, missing_since = Settings.crash_grace / 1_000, details.worker_missing_since
    otherwise = "it frozen or its host lost"
    if missing_since is not None:
        missing = duration(max(queue.at - missing_since, 0))
        yield (
            f"The connection of its worker is missing for {missing}. When it is so for {grace:g} s, or "
            f"another crash_grace, whoever checks {_fate('')} at once."
        )
    elif details.is_worker_registered and _is_away(queue, details.job.worker):
        otherwise = "that not seen"
        yield (
            f"Its worker is not connected. When that lasts for {grace:g} s, or another crash_grace, whoever checks "
            f"{_fate('')}. If nobody does, {RUN_A_CHECKER}."
        )
    elif details.is_worker_registered:
        yield (
            "Were the worker killed, its connection would close, and whoever checks would see that: the job is back "
            f"within about {grace + 2:g} s, with the default crash_grace."
        )
    else:
        otherwise = "the worker dead"
    yield f"Were {otherwise}, the check after the end of the lock would mark the job, and the one after {_fate('')}."


def _is_away(queue: QueueInfo, worker: str) -> bool:
    """Return whether a worker of EchoMQBroker has no connection, as far as Redis says."""
    return queue.workers is not None and worker not in {connected.name for connected in queue.workers}


def _fate(verdict: str) -> str:
    return {
        "requeue": "brings it back to wait",
        "fail": "fails it, for it has stalled too often",
        "drop": "takes it out of active, for it has finished or is gone",
        "copy": "takes one of its two places in active",
        "odd": "leaves it, for its id is not that of a job",
    }.get(verdict, "brings it back or fails it")


def _next_check(queue: QueueInfo) -> str:
    if queue.next_check is None:
        last = queue.last_check
        said = "No check was made lately" if last is None else f"The last check was {_ago(last, queue)}"
        return f"{said}. If none comes, {RUN_A_CHECKER}."
    return f"The next check may be in {duration(queue.next_check)}, if anybody checks: else {RUN_A_CHECKER}."


def _ago(time: int, queue: QueueInfo) -> str:
    return f"{duration(max(queue.at - time, 0))} ago"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
