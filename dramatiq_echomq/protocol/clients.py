from __future__ import annotations

import contextlib
import copy
import inspect
import os
from logging import getLogger
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

import redis
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from ..errors import SettingError
from .interruptible import InterruptibleRedis
from .mutex import make_mutex
from .parameters import require_parameters, unknown_ones_named
from .retries import BROKEN_OR_SILENT, RESENDING, resending_parameters

#: What may be raised when Redis cannot be used. When a whole cluster cannot be, that is no RedisError.
REDIS_ERRORS = (redis.RedisError, redis.exceptions.RedisClusterException, OSError)

#: The Redis of the command and the page where nobody says which.
DEFAULT_URL = "redis://localhost:6379/0"

#: The socket timeouts, in seconds, of a client that has none of its own.
SOCKET_TIMEOUT = 5.0

#: How many connections a pool of ours may have: one for each thread that waits for Redis, however many there are.
MAX_CONNECTIONS = 2**31

#: The socket timeout of redis-py's connections where none is said: None before redis-py 8.
_USUAL_TIMEOUT = inspect.signature(AbstractConnection.__init__).parameters["socket_timeout"].default

#: The parameters of a connection that its pool has set.
_OF_ITS_POOL = {"connection_pool", "orig_host_address", "orig_socket_timeout", "orig_socket_connect_timeout"}

#: The clients whose lack of a timeout was told.
_told: WeakSet[Any] = WeakSet()


def client_from(client: Any, url: str | None, **parameters: Any) -> Any:
    """Return the client that was given, or that a URL and parameters stand for, or None
    when there is nothing.

    Raises:
      SettingError: When there are both, when the URL is none, or when a
        parameter is unknown or belongs elsewhere.  No password is shown.
    """
    require_parameters(parameters, client=client, url=url)
    if client is not None and url is not None:
        raise SettingError("client", "keyword argument", type(client).__name__, "left out when there is a url")
    if url is None:
        return client_of_parameters(**parameters) if parameters else client
    try:
        from_url = client_of_url(url)
    except (ValueError, TypeError, AttributeError):
        if url == "":
            raise SettingError("url", "keyword argument", url, f"a Redis URL such as {DEFAULT_URL}, or unset") from None
        allowed = f"a Redis URL such as {DEFAULT_URL}, with any / ? # @ in a password percent-encoded"
        raise SettingError("url", "keyword argument", "(not shown, it may hold a password)", allowed) from None
    if not parameters:
        return from_url
    with unknown_ones_named(parameters):
        return client_of_url(url, **parameters)


def client_of(url: str | None = None, option: str = "url") -> Any:
    """Return a client of the Redis that a person has named, or else of the one
    that ``REDIS_URL`` names, or else of the usual one.

    Parameters:
      url(str)
      option(str): Where the URL came from, if there is one.

    Raises:
      SettingError: When it is none, with where it came from.
    """
    source = option
    if url is None:
        url, source = os.environ.get("REDIS_URL", DEFAULT_URL), "REDIS_URL"
    try:
        return client_from(None, url)
    except SettingError as error:
        raise SettingError(error.name, source, error.value, error.allowed) from None


def client_of_url(url: str, **parameters: Any) -> redis.Redis:
    """Make a client that does not wait for ever.

    Raises:
      ValueError, TypeError, AttributeError: For a URL that a connection could
        not be made from.
    """
    parts = urlsplit(url)
    if parts.scheme != "unix" and "@" in parts.path + parts.query + parts.fragment:
        raise ValueError("what looks like a path is the end of a password")
    database = unquote(parts.path).replace("/", "")
    if parts.scheme != "unix" and database and not (database.isascii() and database.isdecimal()):
        raise ValueError("redis-py would take database 0")
    client = redis.Redis.from_url(url, **{**_patient(), **parameters})
    pool = client.connection_pool
    pool.connection_class(**pool.connection_kwargs)  # finds options that there are not
    return client


def client_of_parameters(**parameters: Any) -> redis.Redis:
    """Make a client that does not wait for ever from parameters of :class:`redis.Redis`."""
    return redis.Redis(**{**_patient(), **parameters})


def own_client(client: Any, whose: str, *, resending: float = RESENDING) -> Any:
    """Make a client of the same server for what must not hang: with a pool of
    its own, which grows with the threads that wait, and with timeouts.  Warns,
    once for each client, when that has none.

    Parameters:
      client(redis.Redis): That of a cluster is used as it is.
      whose(str): What the client was given to, for the warning.
      resending(float): For how many seconds a command is sent again when the
        connection breaks.
    """
    is_cluster = getattr(client, "connection_pool", None) is None
    if socket_timeout_of(client) is None and client not in _told:
        _told.add(client)
        getLogger(__name__).warning(
            "The Redis client of %s has no socket_timeout: it waits for ever for a server that does not answer. %s",
            whose,
            "Make it with one: RedisCluster(..., socket_timeout=5)."
            if is_cluster
            else f"A copy with {SOCKET_TIMEOUT:g} s is used. To choose: redis.Redis(..., socket_timeout=5).",
        )
    return client if is_cluster else client_with(client, resending=resending)


def client_with(
    client: Any,
    *,
    socket_timeout: float | None = None,
    resending: float = RESENDING,
    resend_after: tuple[type[Exception], ...] = BROKEN_OR_SILENT,
) -> Any:
    """Make a client of the same server with connections of its own.

    Parameters:
      client(redis.Redis): The client to take the connection's parameters from.
      socket_timeout(float): The timeout in seconds; None keeps the client's,
        if it has one.
      resending(float): For how many seconds a command is sent again when the
        connection breaks; 0 for never.
      resend_after(tuple): The errors after which it is.

    Returns:
      redis.Redis: The new client.  That of a cluster shares its connections
      with the old one, timeouts included.
    """
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        own_client = copy.copy(client)
        own_client.cluster_error_retry_attempts = 1 if resending else 0  # what redis-py 5 looks at
        own_client.retry = Retry(NoBackoff(), own_client.cluster_error_retry_attempts)
        return own_client
    timeout = socket_timeout or socket_timeout_of(client) or SOCKET_TIMEOUT
    connect_timeout = socket_timeout or pool.connection_kwargs.get("socket_connect_timeout") or timeout
    parameters = {name: value for name, value in pool.connection_kwargs.items() if name not in _OF_ITS_POOL}
    parameters.update(
        socket_timeout=timeout,
        socket_connect_timeout=connect_timeout,
        retry_on_timeout=False,
        **resending_parameters(resending, resend_after),
    )
    if isinstance(pool, SentinelConnectionPool):
        own: redis.ConnectionPool = SentinelConnectionPool(
            pool.service_name,
            pool.sentinel_manager,
            is_master=pool.is_master,
            check_connection=pool.check_connection,
            connection_class=pool.connection_class,
            max_connections=MAX_CONNECTIONS,
            **parameters,
        )
    else:
        own = redis.ConnectionPool(
            connection_class=pool.connection_class, max_connections=MAX_CONNECTIONS, **parameters
        )
    if hasattr(own, "_lock"):
        own._lock = make_mutex()
    new_client = InterruptibleRedis(connection_pool=own)
    new_client.auto_close_connection_pool = True
    return new_client


def drop_idle_connections(client: Any) -> None:
    """Let the next commands of a client connect anew, to whatever its address leads to by now."""
    pool = getattr(client, "connection_pool", None)
    if pool is not None:
        with contextlib.suppress(TypeError):  # the BlockingConnectionPool of redis-py 5 has no such choice
            pool.disconnect(inuse_connections=False)


def socket_timeout_of(client: Any) -> float | None:
    """Return the socket timeout of a client's connections in seconds, or None."""
    pool = getattr(client, "connection_pool", None)
    parameters = client.get_connection_kwargs() if pool is None else pool.connection_kwargs
    timeout = parameters.get("socket_timeout", _USUAL_TIMEOUT)
    return float(timeout) if timeout else None


def _patient() -> dict[str, Any]:
    """Return the parameters of a client that is made here, where nothing else is said."""
    timeouts = {"socket_timeout": SOCKET_TIMEOUT, "socket_connect_timeout": SOCKET_TIMEOUT}
    return {**timeouts, "max_connections": MAX_CONNECTIONS, **resending_parameters(RESENDING, BROKEN_OR_SILENT)}
