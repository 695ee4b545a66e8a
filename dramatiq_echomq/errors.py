from __future__ import annotations

from typing import Any


class EchoMQError(Exception):
    """Base class of the errors that this package raises."""


class SettingError(EchoMQError, ValueError):
    """A setting with a value that cannot be used.

    Parameters:
      name(str): The setting.
      source(str): Where the value came from, say ``keyword argument`` or the
        name of an environment variable.
      value(object): The value.
      allowed(str): What would have been right.
    """

    def __init__(self, name: str, source: str, value: Any, allowed: str) -> None:
        super().__init__(f"{name} ({source}) is {value!r}, but it must be {allowed}")
        self.name = name
        self.source = source


class QueueRefused(EchoMQError):
    """A queue whose keys in Redis are not what the EchoMQ protocol says:
    a key of the wrong type, or data of EchoMQ 2.  Nothing was written.
    """


class JobStalled(EchoMQError):
    """The failure of a job whose workers died or lost its lock too often.

    Parameters:
      reason(str): The job's ``failedReason``.
      stalls(int): How often the job has stalled.
      worker(str): The last worker that held the job, as far as known.
    """

    def __init__(self, reason: str, stalls: int = 0, worker: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.stalls = stalls
        self.worker = worker
