"""What can be wrong, and what it means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a queue or its server.

    Parameters:
      kind(str): One of :data:`MEANINGS`.
      detail(str): What exactly, where there is more to say.
      job_ids(tuple[str, ...]): The jobs that it is about, if any.
    """

    kind: str
    detail: str = ""
    job_ids: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """What it is, and what it leads to."""
        return MEANINGS[self.kind][0]

    @property
    def repair(self) -> str:
        """What a repair does, or what to do where there is none."""
        return MEANINGS[self.kind][1]

    @property
    def is_repairable(self) -> bool:
        return self.kind in REPAIRS


#: By kind: what it means, and what a repair does or a person can do.
MEANINGS = {
    "no-job": (
        "ids without a job: their data is gone, by hand or by eviction. Workers and checks drop them one by one",
        "the ids are removed",
    ),
    "nowhere": (
        "jobs that no list of the queue has: they will never run, and nobody sees them",
        "they are made available again, or put among the finished ones if they have finished",
    ),
    "twice": (
        "ids in more than one place: the job may run twice, or run again although it has finished",
        "they stay in the one place that the job speaks for: where it runs, has finished, or waits",
    ),
    "lock": (
        "locks that never end, on jobs that are not active: while one is there, nobody can remove its job",
        "the locks are removed",
    ),
    "idle-lock": (
        "locks on jobs that are not active: another program is about to finish them, or died at that",
        "nothing is needed: the locks end by themselves",
    ),
    "mark": (
        "marks on jobs that are not active: they mean nothing, but a job may stall without a grace pass",
        "the marks are removed",
    ),
    "unchecked": (
        "active jobs without a lock, and nobody has checked the queue lately: their workers are dead or frozen, and "
        "nobody brings them back",
        "add StalledCheckerMiddleware to the workers' broker, or start `dramatiq-echomq run`; `dramatiq-echomq check`, "
        "given twice, brings them back at once",
    ),
    "throttle": (
        "the throttle of the checks has no TTL: other programs would never check the queue again",
        "it ends in 30 s",
    ),
    "paused-left": (
        "jobs in `paused` of a queue that is not paused: not every program looks there",
        "they go back to wait, in front",
    ),
    "no-worker": (
        "jobs wait, are due or are active, and no worker is connected, or none that names its connection as BullMQ's "
        "do: nobody runs them, and perhaps nobody brings back what dead workers held",
        "start a worker, with StalledCheckerMiddleware in its broker",
    ),
    "refused": (
        "the queue cannot be used: keys of the wrong type, or another version of the protocol",
        "look at the key that is named, and rename or remove it; this is not repaired for you",
    ),
    "eviction": (
        "Redis may evict keys when memory runs out: locks, and then jobs run twice, or jobs themselves",
        "set maxmemory-policy to noeviction",
    ),
    "old-server": (
        "the server is older than what is tested: Redis 6.2 and Valkey 7.2",
        "upgrade it",
    ),
    "clock": (
        "the clocks of this machine and of Redis differ: ages are wrong, and delays of older programs too",
        "let both follow an NTP server",
    ),
}

#: What a script can repair: the kind, as the script calls it.
REPAIRS = ("no-job", "nowhere", "twice", "lock", "mark", "throttle", "paused-left")
