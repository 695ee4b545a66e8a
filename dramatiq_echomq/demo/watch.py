from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ..protocol.keys import QueueKeys

#: What the events of a queue mean for the job they name.
STATES = {"waiting": "waiting", "active": "active", "delayed": "delayed", "completed": "completed", "failed": "failed"}
FINISHED = ("completed", "failed")


@dataclass
class Job:
    """What became of a job so far.

    Parameters:
      number(int): When it was seen first.
      job_id(str)
      name(str)
      trail(list[str]): The states it has gone through.
      workers(list[str]): The process ids of the workers that took it.
      reason(str): Why it failed.
    """

    number: int
    job_id: str
    name: str
    trail: list[str] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def state(self) -> str:
        return self.trail[-1] if self.trail else ""

    @property
    def producer(self) -> str:
        """Who added it: BullMQ's ids are numbers, those of EchoMQBroker are UUIDs."""
        return "BullMQ" if self.job_id.isdecimal() else "Dramatiq"

    @property
    def recoveries(self) -> int:
        return self.trail.count("recovered")


@dataclass(frozen=True)
class Change:
    """A job that went into another state, and the seconds since the start."""

    seconds: float
    job: Job
    state: str


class Watch:
    """Follows the jobs of a queue by reading its events and its marks.

    Parameters:
      client(redis.Redis): One with ``decode_responses``.
      queue_name(str)
      prefix(str)
    """

    def __init__(self, client: Any, queue_name: str, prefix: str) -> None:
        self.client = client
        self.keys = QueueKeys(queue_name, prefix)
        self.jobs: dict[str, Job] = {}
        self.started = time.monotonic()
        self._last_event = "0"

    def update(self) -> list[Change]:
        """Read what has happened since the last call."""
        changes = []
        for _, events in self.client.xread({self.keys.events: self._last_event}):
            for event_id, event in events:
                self._last_event = event_id
                state = _state_after(event)
                if state:
                    changes.append(self._note(event["jobId"], state, event))
        # A mark leaves no event.  It is there for a whole interval, so a look now and then sees it.
        marks = self.client.smembers(self.keys.stalled)
        for job in self.jobs.values():
            if job.job_id in marks and job.state == "active":
                changes.append(self._note(job.job_id, "marked", {}))
        return changes

    def number_in(self, *states: str) -> int:
        """Return how many jobs are in one of these states now."""
        return sum(job.state in states for job in self.jobs.values())

    def _note(self, job_id: str, state: str, event: dict[str, str]) -> Change:
        if job_id not in self.jobs:
            self.jobs[job_id] = Job(len(self.jobs) + 1, job_id, self._field(job_id, "name"))
        job = self.jobs[job_id]
        job.trail.append(state)
        if state == "active":
            job.workers.append(self._field(job_id, "pb").rpartition(":")[2])  # host:process
        job.reason = event.get("failedReason", job.reason)
        return Change(time.monotonic() - self.started, job, state)

    def _field(self, job_id: str, name: str) -> str:
        return str(self.client.hget(self.keys.job(job_id), name) or "")


def _state_after(event: dict[str, str]) -> str:
    """Return the state that an event brings a job into, or an empty text."""
    if event["event"] == "waiting" and event.get("prev") == "active":
        return "recovered"
    return STATES.get(event["event"], "")
