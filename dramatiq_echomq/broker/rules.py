from __future__ import annotations

from typing import NamedTuple

from ..settings import Settings


class Rules(NamedTuple):
    """What the script that fetches and finishes jobs is told about all of them,
    in its order: what it goes by where the jobs do not say so themselves.

    Parameters:
      worker(str): The name that the jobs keep of this worker.
      lock_duration(int): In ms.
      keep_completed(int | str): How many completed jobs are kept; empty for all.
      keep_failed(int | str): The same of failed ones.
      keep_failed_for(float | str): And for how many seconds; empty for ever.
      max_event_bytes(int): The longest result or reason that an event carries.
      metrics_points(int): How many minutes of BullMQ's metrics are kept.
    """

    worker: str = ""
    lock_duration: int = 30_000
    keep_completed: int | str = ""
    keep_failed: int | str = ""
    keep_failed_for: float | str = ""
    max_event_bytes: int = 10_000
    metrics_points: int = 0


def rules_of(settings: Settings, worker_name: str) -> Rules:
    """Return what the settings say.

    Parameters:
      settings(Settings)
      worker_name(str)
    """
    return Rules(
        worker=worker_name,
        lock_duration=settings.lock_duration,
        keep_completed=settings.keep_completed,
        keep_failed="" if settings.keep_failed is None else settings.keep_failed,
        keep_failed_for=settings.dead_message_ttl / 1000,
        max_event_bytes=settings.max_event_bytes,
        metrics_points=settings.metrics_max_data_points,
    )
