"""The options of messages and actors that say how their jobs are treated."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from dramatiq import Actor, Message
from dramatiq.common import current_millis
from dramatiq.logging import get_logger

from ..protocol.logtext import on_one_line
from ..protocol.policy_options import POLICY_OPTIONS
from ..settings import Settings
from .jobs import JOB_ID_OPTION
from .message_options import MESSAGE_OPTIONS, require_options

logger = get_logger(__name__)

#: The ``broker_priority`` of a message that is fetched before all that wait.
FIRST = "first"

#: What messages have of themselves.
ALWAYS_KNOWN = frozenset({JOB_ID_OPTION, "eta", *MESSAGE_OPTIONS})

#: How alike two names must be for one to be the other, mistyped (see difflib).
LIKENESS = 0.85


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


@functools.lru_cache(maxsize=1_000)
def warn_of_misspelt(name: str) -> None:
    """Warn, once, of an option of a message that looks like one of this broker's.
    Dramatiq takes any option and ignores what nobody knows, so work that must
    not run twice would.
    """
    for meant in get_close_matches(name, POLICY_OPTIONS, n=1, cutoff=LIKENESS):
        logger.warning("The option %r of a message has no effect. Did you mean %s?", on_one_line(name), meant)


def opts_of(
    message: Message[Any], *, actor_options: Mapping[str, Any], settings: Settings, due: int, delay: int = 0
) -> dict[str, Any]:
    """Return the opts of a new job.

    Parameters:
      message(Message)
      actor_options(Mapping): Those of its actor, as far as it is known.
      settings(Settings): Those of the broker.  What they say about how long
        jobs are kept is for workers and checkers that do not know them.
      due(int): When the job is due in ms since the epoch, or 0 for now.
      delay(int): Instead, in how many ms it is due.

    Raises:
      SettingError: For an option of the message that cannot be used.
    """
    opts = policy_for(message.options, actor_options)
    if due or delay:
        opts["delay"] = delay or max(due - current_millis(), 0)
    if settings.keep_completed != Settings.keep_completed:
        opts["removeOnComplete"] = settings.keep_completed
    if settings.keep_failed is not None:
        opts["removeOnFail"] = {"count": settings.keep_failed, "age": settings.dead_message_ttl // 1000}
    return opts


def priority_of(opts: Mapping[str, Any]) -> int | str:
    """Return what the scripts that add jobs take as the priority."""
    return FIRST if opts.get("lifo") else int(opts.get("priority", 0))


def policies_of(actors: Iterable[Actor[Any, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the actors say about jobs that programs in other languages add."""
    found = {actor.actor_name: policy_for({}, actor.options) for actor in actors}
    return {name: policy for name, policy in found.items() if policy}
