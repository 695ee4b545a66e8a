from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dramatiq import Actor

from ..errors import SettingError
from ..validation import require_whole_number

#: The options of messages and actors that say how their jobs are treated: the
#: smallest value of each, and its name in a job's opts.
POLICY_OPTIONS = {
    "max_stalled_count": (0, "maxStalledCount"),
    "lock_duration": (1, "lockDuration"),
    "broker_priority": (0, "priority"),
}

#: The largest priority that BullMQ knows.
MAX_PRIORITY = 2**21


def validate_policy(options: Mapping[str, Any], source: str) -> None:
    """Let good values of :data:`POLICY_OPTIONS` pass.

    Parameters:
      options(Mapping): The options of a message or an actor.
      source(str): Whose they are.

    Raises:
      SettingError: For the first one that cannot be used.
    """
    for name, (minimum, _) in POLICY_OPTIONS.items():
        if options.get(name) is not None:
            value = require_whole_number(name, options[name], minimum=minimum, source=source)
            if name == "broker_priority" and value > MAX_PRIORITY:
                raise SettingError(name, source, value, f"at most {MAX_PRIORITY}")


def policy_for(message_options: Mapping[str, Any], actor_options: Mapping[str, Any]) -> dict[str, int]:
    """What the opts of a new job say: the message's own options, then its actor's.

    Raises:
      SettingError: For an option of the message that cannot be used.
    """
    if message_options.keys().isdisjoint(POLICY_OPTIONS) and actor_options.keys().isdisjoint(POLICY_OPTIONS):
        return {}
    validate_policy(message_options, "option of the message")
    found = {}
    for name, (_, opts_name) in POLICY_OPTIONS.items():
        own = message_options.get(name)
        value = actor_options.get(name) if own is None else own
        if value is not None:
            found[opts_name] = value
    return found


def policies_of(actors: Iterable[Actor[Any, Any]]) -> dict[str, dict[str, int]]:
    """What the actors say about jobs that programs in other languages add."""
    found = {actor.actor_name: policy_for({}, actor.options) for actor in actors}
    return {name: policy for name, policy in found.items() if policy}
