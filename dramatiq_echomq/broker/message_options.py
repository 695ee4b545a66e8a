"""What the options of messages and actors must be, so that Dramatiq's middleware can work with them.

A job may come from anybody.  An option of the wrong type makes a middleware
raise where Dramatiq does not expect it: the thread that runs the job dies, or
the job counts as done although it failed.  So options are checked at the door:
before a message becomes a job, and before a job becomes a message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dramatiq import Message

from ..errors import SettingError
from ..protocol.logtext import on_one_line
from ..settings import SHORTEST_LOCK
from ..validation import LARGEST_NUMBER, is_whole_number, milliseconds_hint

#: The largest priority that BullMQ knows.
MAX_PRIORITY = 2**21


@dataclass(frozen=True)
class Check:
    """What an option must be.

    Parameters:
      allowed(str): The same in words.
      fits(Callable): Tells whether a value is that.
      hint(Callable): Returns what an error is to add about a value that is
        not, say what was probably meant.
    """

    allowed: str
    fits: Callable[[Any], bool]
    hint: Callable[[Any], str] = lambda value: ""


def require_message(message: Message[Any]) -> None:
    """Validate what a message of anybody holds besides its names and arguments.

    Raises:
      SettingError: For the first thing that cannot be used.
    """
    if not _is_number(message.message_timestamp):
        raise SettingError("message_timestamp", "field of the message", message.message_timestamp, _A_NUMBER.allowed)
    require_options(message.options, "option of the message")


def require_options(options: Mapping[str, Any], source: str) -> None:
    """Validate the options of a message or an actor, and those of the messages
    in them.  Options that are not in :data:`MESSAGE_OPTIONS` may be anything.

    Parameters:
      options(Mapping)
      source(str): Whose they are, for the error.

    Raises:
      SettingError: For the first option that cannot be used.
    """
    pending = [(options, source)]
    while pending:
        options, source = pending.pop()
        for name, value in options.items():
            check = MESSAGE_OPTIONS.get(name)
            if check is not None and not check.fits(value):
                raise SettingError(name, source, value, check.allowed + check.hint(value))
        if target := options.get("pipe_target"):
            pending.append((target["options"], f"option of the pipe_target in an {source}"))
        for callback in options.get("group_completion_callbacks") or ():
            pending.append((callback["options"], f"option of a group completion callback in an {source}"))


def _is_number(value: Any) -> bool:
    """A bool is one, as it is everywhere in Python."""
    return isinstance(value, int | float) and -LARGEST_NUMBER <= value <= LARGEST_NUMBER


def _is_limit(value: Any) -> bool:
    return _is_number(value) or value == math.inf


def _is_exceptions(value: Any) -> bool:
    classes = value if isinstance(value, tuple) else (value,)
    return all(isinstance(item, type) and issubclass(item, BaseException) for item in classes)


def _is_name(value: Any) -> bool:
    """Dramatiq shows the name in a traceback when there is no such actor."""
    return isinstance(value, str) and on_one_line(value) == value


#: The fields of a message: those that it must have, with their types, and those that it may have.
_FIELDS: dict[str, Any] = {
    "queue_name": str,
    "actor_name": str,
    "args": (list, tuple),
    "kwargs": dict,
    "options": dict,
}
_MORE_FIELDS: dict[str, Any] = {"message_id": str, "message_timestamp": (int, float)}


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _FIELDS.keys() <= value.keys() <= _FIELDS.keys() | _MORE_FIELDS.keys()
        and all(isinstance(value[name], kind) for name, kind in {**_FIELDS, **_MORE_FIELDS}.items() if name in value)
    )


def _are_messages(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_message(item) for item in value)


def _whole_number(minimum: int, maximum: int = LARGEST_NUMBER) -> Check:
    def fits(value: Any) -> bool:
        return value is None or (is_whole_number(value) and minimum <= value <= maximum)

    return Check(f"a whole number from {minimum} to {maximum}, or None", fits)


def _milliseconds(minimum: int) -> Check:
    hint = partial(milliseconds_hint, minimum=minimum)
    return Check(f"None or a whole number of at least {minimum} ms", _whole_number(minimum).fits, hint)


def _or_first(check: Check) -> Check:
    return Check(f"{check.allowed}, or 'first'", lambda value: value == "first" or check.fits(value))


def _or_unset(check: Check) -> Check:
    """A check of an option that counts as not given when it is None, 0 or empty."""
    return Check(f"{check.allowed}, or None", lambda value: not value or check.fits(value))


_A_NUMBER = Check(f"a number of at most {LARGEST_NUMBER}", _is_number)
_A_DELAY = Check(_A_NUMBER.allowed, lambda value: value is not True and _is_number(value))
_A_LIMIT = Check(f"a number of at most {LARGEST_NUMBER} or infinity", _is_limit)
_A_LIMIT_OR_NONE = Check(f"{_A_LIMIT.allowed}, or None", lambda value: value is None or _is_limit(value))
_AN_ACTOR = _or_unset(Check("the name of an actor", _is_name))

#: By the name of an option, what Dramatiq's middleware and this broker can work with.
MESSAGE_OPTIONS: dict[str, Check] = {
    # Retries
    "retries": _A_NUMBER,
    "max_retries": _A_LIMIT_OR_NONE,
    "min_backoff": _A_NUMBER,
    "max_backoff": _A_LIMIT,
    "throws": _or_unset(Check("an exception class or a tuple of them", _is_exceptions)),
    "on_retry_exhausted": _AN_ACTOR,
    # TimeLimit, AgeLimit and delays.  An eta that is no number is none to Dramatiq.
    "time_limit": _or_unset(_A_LIMIT),
    "max_age": _or_unset(_A_LIMIT),
    "eta": Check(_A_NUMBER.allowed, lambda value: not isinstance(value, int | float) or _is_number(value)),
    "delay": _or_unset(_A_DELAY),
    # Callbacks, Pipelines and GroupCallbacks
    "on_success": _AN_ACTOR,
    "on_failure": _AN_ACTOR,
    "pipe_target": Check("a message as a dictionary, or None", lambda value: value is None or _is_message(value)),
    "group_completion_uuid": _or_unset(Check("a text", lambda value: isinstance(value, str))),
    "group_completion_callbacks": _or_unset(Check("a list of messages as dictionaries", _are_messages)),
    # Results
    "result_ttl": Check(
        f"a whole number of at most {LARGEST_NUMBER}",
        lambda value: is_whole_number(value) and _is_number(value),
    ),
    # EchoMQBroker
    "max_stalled_count": _whole_number(0),
    "lock_duration": _milliseconds(SHORTEST_LOCK),
    "broker_priority": _or_first(_whole_number(0, MAX_PRIORITY)),
}
