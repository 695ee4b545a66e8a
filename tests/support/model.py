"""A queue as plain Python: the rules of the protocol in their plainest form."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_STALLED_COUNT = 2


@dataclass
class Job:
    """What the model knows about a job."""

    place: str = ""
    priority: int = 0
    attempts: int = 0  # its `opts.attempts`, 0 for none
    locked: bool = False
    marked: bool = False
    stalls: int = 0
    made: int = 0  # attempts made
    started: int = 0

    def dies(self) -> bool:
        """Whether one more stall is too much."""
        return self.stalls + 1 > MAX_STALLED_COUNT or 1 <= self.attempts <= self.made + 1

    def verdict(self) -> str:
        """What the next check does to this job while it is in `active`."""
        if self.locked:
            return "healthy"
        if not self.marked:
            return "mark"
        return "fail" if self.dies() else "requeue"


@dataclass
class Model:
    """All jobs of a queue, and the order of those in `wait` (or `paused`) and in `active`, heads first."""

    jobs: dict[str, Job] = field(default_factory=dict)
    line: list[str] = field(default_factory=list)
    active: list[str] = field(default_factory=list)
    is_paused: bool = False

    def make_available(self, job_id: str) -> None:
        job = self.jobs[job_id]
        if job.priority:
            job.place = "prioritized"
        else:
            job.place = "paused" if self.is_paused else "wait"
            self.line.insert(0, job_id)

    def take(self, job_id: str) -> None:
        job = self.jobs[job_id]
        job.place, job.locked, job.started = "active", True, job.started + 1
        if job_id in self.line:
            assert self.line.pop() == job_id
        self.active.insert(0, job_id)

    def finish(self, job_id: str) -> None:
        job = self.jobs[job_id]
        job.place, job.locked, job.marked = "completed", False, False
        self.active.remove(job_id)

    def pause_or_resume(self) -> None:
        self.is_paused = not self.is_paused
        for job_id in self.line:
            self.jobs[job_id].place = "paused" if self.is_paused else "wait"

    def stall(self, job_id: str) -> str:
        """A job is found stalled a second time. Returns what becomes of it."""
        job = self.jobs[job_id]
        verdict = "fail" if job.dies() else "requeue"
        self.active.remove(job_id)
        job.marked, job.stalls, job.made = False, job.stalls + 1, job.made + 1
        if verdict == "fail":
            job.place = "failed"
        else:
            self.make_available(job_id)
        return verdict

    def check(self) -> dict[str, list[str]]:
        """One whole check. Returns the ids by their verdicts, the oldest job first."""
        ids: dict[str, list[str]] = {"healthy": [], "mark": [], "requeue": [], "fail": []}
        for job_id in reversed(list(self.active)):
            verdict = self.jobs[job_id].verdict()
            ids[verdict].append(job_id)
            if verdict in ("requeue", "fail"):
                self.stall(job_id)
            else:
                self.jobs[job_id].marked = verdict == "mark"
        return ids
