"""What a value must be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from .errors import SettingError, UnknownSetting

#: The largest whole number that Lua and JSON hold exactly.
LARGEST_NUMBER = 2**53 - 1


def require_whole_number(name: str, value: Any, *, minimum: int, source: str = "keyword argument") -> int:
    """Validate a whole number from `minimum` to :data:`LARGEST_NUMBER`.

    Raises:
      SettingError: For anything else, booleans included.
    """
    if not is_whole_number(value) or value < minimum:
        raise SettingError(name, source, value, f"a whole number of at least {minimum}{text_hint(value, minimum)}")
    if value > LARGEST_NUMBER:
        raise SettingError(name, source, value, f"a whole number of at most {LARGEST_NUMBER}")
    return value


def require_milliseconds(name: str, value: Any, *, minimum: int, source: str = "keyword argument") -> int:
    """Validate a duration in ms.  One that is shorter than any of use was
    probably meant in seconds.

    Raises:
      SettingError: For anything else than a whole number from `minimum` to
        :data:`LARGEST_NUMBER`.
    """
    if not is_whole_number(value) or not minimum <= value <= LARGEST_NUMBER:
        allowed = f"a whole number of at least {minimum} ms{milliseconds_hint(value, minimum=minimum)}"
        raise SettingError(name, source, value, allowed)
    return value


def milliseconds_hint(value: Any, *, minimum: int) -> str:
    """Return what an error is to add about a duration that is not allowed: how
    long it may be at most, or what was meant when it is in seconds.
    """
    if is_whole_number(value) and value > LARGEST_NUMBER:
        return f" and at most {LARGEST_NUMBER} ms"
    if is_whole_number(value) and 0 < value < minimum <= value * 1_000:
        return f"; did you mean {value * 1_000} ({value} s)?"
    return text_hint(value, minimum)


def text_hint(value: Any, minimum: int) -> str:
    """Return what an error is to add about a number that is written as a text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16 and int(value) >= minimum:
        return f"; this is a text, write {int(value)} without quotes"
    return ""


def is_whole_number(value: Any) -> TypeGuard[int]:
    """A bool is none here."""
    return isinstance(value, int) and not isinstance(value, bool)


def require_share(name: str, value: Any, *, source: str = "keyword argument") -> float | None:
    """Validate a share, above 0 and up to 1, or None.

    Raises:
      SettingError: For anything else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise SettingError(name, source, value, "a number above 0 and up to 1, say 0.5, or None")
    return float(value)


def require_prefix(value: Any, *, source: str = "keyword argument") -> str:
    """Validate a key prefix: text, not empty, without a last colon.

    Raises:
      SettingError: For anything else.
    """
    if not isinstance(value, str) or not value or value.endswith(":"):
        raise SettingError("prefix", source, value, "a text such as 'emq', without a colon at its end")
    return value


def require_client(client: Any) -> None:
    """Validate a synchronous Redis client.

    Raises:
      SettingError: For anything else, clients of ``redis.asyncio`` included.
    """
    execute = getattr(client, "execute_command", None)
    if execute is None or isinstance(client, type) or inspect.iscoroutinefunction(execute):
        allowed = "a redis.Redis or redis.cluster.RedisCluster (those of redis.asyncio will not do)"
        raise SettingError("client", "argument", type(client).__name__, allowed)


def require_hash_tag(client: Any, prefix: str) -> None:
    """Validate that a prefix keeps a queue's keys in one slot of a cluster.

    Raises:
      SettingError: For a cluster and a prefix without a hash tag.
    """
    from redis.cluster import RedisCluster

    _, _, tag = prefix.partition("{")
    if isinstance(client, RedisCluster) and tag.find("}") < 1:
        allowed = "one with a hash tag such as '{emq}' for a Redis cluster, where a queue's keys must share a slot"
        raise SettingError("prefix", "argument", prefix, allowed)


def require_no_others(unknown: Mapping[str, Any], known_to: Callable[..., Any]) -> None:
    """Validate that a call had no keyword arguments but its own.

    Parameters:
      unknown(Mapping): Those that it does not know.
      known_to(Callable): What was called.

    Raises:
      UnknownSetting: For the first one, with the one that was probably meant.
    """
    for name in unknown:
        parameters = inspect.signature(known_to).parameters.values()
        known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        raise UnknownSetting(name, "keyword argument", known)
