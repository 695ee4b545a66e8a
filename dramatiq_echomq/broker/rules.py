from __future__ import annotations

import json

from ..settings import Settings


def rules_of(settings: Settings, worker_name: str) -> str:
    """Return what the script that fetches and finishes jobs is told about all
    of them, a JSON object: for how long their locks last and which jobs are
    kept where they do not say so themselves, the longest result or reason that
    an event carries, and how many minutes of BullMQ's metrics are kept.

    Parameters:
      settings(Settings)
      worker_name(str): The name that the jobs keep of this worker.
    """
    return json.dumps(
        {
            "worker": worker_name,
            "lockDuration": settings.lock_duration,
            "keepCompleted": {"count": settings.keep_completed},
            "keepFailed": {"count": settings.keep_failed, "age": settings.dead_message_ttl / 1000},
            "maxEventBytes": settings.max_event_bytes,
            "metricsPoints": settings.metrics_max_data_points,
        }
    )
