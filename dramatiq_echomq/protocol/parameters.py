"""What may be said beside a URL or a client, and what is said there by mistake."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis
from redis.connection import parse_url

from ..errors import SettingError, UnknownSetting
from ..settings import Settings

#: Keyword arguments that a broker might be given by mistake, and what to do with them.
MISPLACED = {
    **dict.fromkeys(
        ("stalled_interval", "max_stalled_count", "batch_size", "report_only", "queues"),
        "given to StalledCheckerMiddleware",
    ),
    "namespace": "called prefix",
    **dict.fromkeys(
        ("maintenance_chance", "heartbeat_timeout", "requeue_deadline", "requeue_interval", "max_lua_stack"),
        "left out: locks and checks do its work",
    ),
}

#: What every URL says, if only by leaving it out.
SAID_BY_URLS = {"host", "port", "unix_socket_path", "path"}


def require_parameters(parameters: Mapping[str, Any], *, client: Any, url: str | None) -> None:
    """Validate that parameters of a client belong here and are not said twice.

    Raises:
      SettingError: For the first one that does not.  No value is shown that
        may be a password.
    """
    said_by_url = SAID_BY_URLS.union(_options_of(url)) if url is not None else set()
    for name in sorted(parameters):
        if name in MISPLACED:
            raise SettingError(name, "keyword argument", parameters[name], MISPLACED[name])
        if client is not None:
            raise SettingError(name, "keyword argument", "(not shown)", "left out when there is a client")
        if name in said_by_url:
            raise SettingError(name, "keyword argument", "(not shown)", "left out when there is a url that says it")


@contextmanager
def unknown_ones_named(parameters: Mapping[str, Any]) -> Iterator[None]:
    """Say which parameter redis-py does not know, and which one was probably
    meant, instead of how redis-py puts it.

    Raises:
      UnknownSetting: Instead of the TypeError that names one of the parameters.
    """
    try:
        yield
    except TypeError as error:
        for name in parameters:
            if repr(name) in str(error):
                raise UnknownSetting(name, "keyword argument", _known()) from None
        raise


def _known() -> set[str]:
    settings = {field.name for field in dataclasses.fields(Settings)}
    return settings | set(inspect.signature(redis.Redis).parameters) | {"url", "client", "middleware"}


def _options_of(url: str) -> set[str]:
    try:
        return set(parse_url(url))
    except (ValueError, TypeError, AttributeError):  # whoever makes the client says what is wrong with it
        return set()
