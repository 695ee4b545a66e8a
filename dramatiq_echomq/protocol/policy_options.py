"""The options of actors and messages that say how their jobs are treated."""

from __future__ import annotations

#: What each is called in a job's opts.
POLICY_OPTIONS = {
    "max_stalled_count": "maxStalledCount",
    "lock_duration": "lockDuration",
    "broker_priority": "priority",
}
