"""The options of messages and actors that say how their jobs are treated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dramatiq import Actor

from .message_options import require_options

#: The ``broker_priority`` of a message that is fetched before all that wait.
FIRST = "first"

#: What these options are called in a job's opts.
POLICY_OPTIONS = {
    "max_stalled_count": "maxStalledCount",
    "lock_duration": "lockDuration",
    "broker_priority": "priority",
}


def policy_for(message_options: Mapping[str, Any], actor_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the opts of a new job say: the message's own options, then its actor's.

    Raises:
      SettingError: For an option of the message that cannot be used.
    """
    require_options(message_options, "option of the message")
    if message_options.keys().isdisjoint(POLICY_OPTIONS) and actor_options.keys().isdisjoint(POLICY_OPTIONS):
        return {}
    found = {}
    for name, opts_name in POLICY_OPTIONS.items():
        own = message_options.get(name)
        value = actor_options.get(name) if own is None else own
        if name == "broker_priority" and value == FIRST:
            found["lifo"] = True
        elif value is not None:
            found[opts_name] = value
    return found


def policies_of(actors: Iterable[Actor[Any, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the actors say about jobs that programs in other languages add."""
    found = {actor.actor_name: policy_for({}, actor.options) for actor in actors}
    return {name: policy for name, policy in found.items() if policy}
