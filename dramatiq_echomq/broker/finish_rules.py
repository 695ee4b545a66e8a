from __future__ import annotations

import json

from ..settings import Settings


def finish_rules(settings: Settings) -> str:
    """Return what the scripts that finish jobs are told about all of them, a
    JSON object: which jobs are kept where they do not say so themselves, the
    longest result or reason that an event carries, and how many minutes of
    BullMQ's metrics are kept.

    Parameters:
      settings(Settings)
    """
    return json.dumps(
        {
            "keepCompleted": {"count": settings.keep_completed},
            "keepFailed": {"count": settings.keep_failed, "age": settings.dead_message_ttl / 1000},
            "maxEventBytes": settings.max_event_bytes,
            "metricsPoints": settings.metrics_max_data_points,
        }
    )
