from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ..settings import Settings


def id_to_bytes(job_id: str | bytes) -> bytes:
    """Turn a job id into the bytes that Redis holds.

    Raises:
      ValueError: When it is no job id.
    """
    if not isinstance(job_id, str | bytes):
        raise ValueError(f"the job id is {job_id!r}, but it must be a text or bytes")
    return job_id if isinstance(job_id, bytes) else job_id.encode("utf-8", "surrogateescape")


def id_to_text(job_id: bytes) -> str:
    """Turn the bytes of a job id into text that :func:`id_to_bytes` turns back,
    whatever the bytes are.
    """
    return job_id.decode("utf-8", "surrogateescape")


class QueueKeys:
    """Every key of one queue.  This is the only place that spells a key.

    Parameters:
      queue_name(str): The queue.  The name of one of Dramatiq's delay queues
        (``….DQ``) or dead letter queues (``….XQ``) stands for its queue.
      prefix(str): What all keys of all queues begin with.
    """

    def __init__(self, queue_name: str, prefix: str = Settings.prefix) -> None:
        if not isinstance(queue_name, str) or queue_name in ("", ".DQ", ".XQ"):
            raise ValueError(f"the queue name is {queue_name!r}, but it must be a text that is not empty")

        self.queue_name: str = queue_name[:-3] if queue_name.endswith((".DQ", ".XQ")) else queue_name
        self.prefix: str = prefix
        self.base: str = f"{prefix}:{self.queue_name}:"
        self.wait: str = self.base + "wait"
        self.paused: str = self.base + "paused"
        self.active: str = self.base + "active"
        self.delayed: str = self.base + "delayed"
        self.prioritized: str = self.base + "prioritized"
        self.completed: str = self.base + "completed"
        self.failed: str = self.base + "failed"
        self.stalled: str = self.base + "stalled"
        self.stalled_check: str = self.base + "stalled-check"
        self.untold: str = self.stalled_check + ":untold"
        self.meta: str = self.base + "meta"
        self.marker: str = self.base + "marker"
        self.events: str = self.base + "events"
        self.id: str = self.base + "id"
        self.repeat: str = self.base + "repeat"
        self.moved: str = self.base + "echomq:moved"
        self.workers: str = self.base + "echomq:workers"

    def job(self, job_id: str | bytes) -> bytes:
        """Return the key of a job's hash."""
        return id_to_bytes(self.base) + id_to_bytes(job_id)

    def lock(self, job_id: str | bytes) -> bytes:
        """Return the key of a job's lock."""
        return self.job(job_id) + b":lock"

    def scheduler(self, scheduler_id: str | bytes) -> bytes:
        """Return the key of a job scheduler's hash."""
        return id_to_bytes(self.repeat) + b":" + id_to_bytes(scheduler_id)

    def sweep_record(self, sweep_id: str) -> str:
        """Return the key under which a check keeps its last reply, in case it gets lost."""
        return f"{self.stalled_check}:{sweep_id}"

    def look_throttle(self, queue_names: Iterable[str]) -> str:
        """Return the key that lets only one of those look who look at the workers of these queues."""
        group = hashlib.sha1("\0".join(sorted(queue_names)).encode("utf-8", "surrogateescape")).hexdigest()
        return f"{self.workers}:look:{group}"
