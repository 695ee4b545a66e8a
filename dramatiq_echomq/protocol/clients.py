from __future__ import annotations

import contextlib
import copy
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from ..errors import SettingError
from .parameters import require_parameters, unknown_ones_named

#: What may be raised when Redis cannot be used. When a whole cluster cannot be, that is no RedisError.
REDIS_ERRORS = (redis.RedisError, redis.exceptions.RedisClusterException, OSError)

#: The socket timeouts, in seconds, of a client that is made from a URL.
SOCKET_TIMEOUT = 10.0


def client_from(client: Any, url: str | None, **parameters: Any) -> Any:
    """Return the client that was given, or that a URL and parameters stand for, or None.

    Raises:
      SettingError: When there are both, when the URL is none, or when a
        parameter is unknown or belongs elsewhere.  No password is shown.
    """
    require_parameters(parameters, client=client, url=url)
    if client is not None and url is not None:
        raise SettingError("client", "keyword argument", type(client).__name__, "left out when there is a url")
    if url is None:
        return client
    try:
        from_url = client_of_url(url)
    except (ValueError, TypeError, AttributeError):
        allowed = "a Redis URL such as redis://localhost:6379/0, with any / ? # @ in a password percent-encoded"
        raise SettingError("url", "keyword argument", "(not shown, it may hold a password)", allowed) from None
    if not parameters:
        return from_url
    with unknown_ones_named(parameters):
        return client_of_url(url, **parameters)


def client_of_url(url: str, **parameters: Any) -> redis.Redis:
    """A client that does not wait for ever.  Raises an error for any URL that a
    connection could not be made from.
    """
    parts = urlsplit(url)
    if parts.scheme != "unix" and "@" in parts.path + parts.query + parts.fragment:
        raise ValueError("what looks like a path is the end of a password")
    timeouts = {"socket_timeout": SOCKET_TIMEOUT, "socket_connect_timeout": SOCKET_TIMEOUT}
    client = redis.Redis.from_url(url, **{**timeouts, **parameters})
    pool = client.connection_pool
    pool.connection_class(**pool.connection_kwargs)  # finds options that there are not
    return client


def client_with(client: Any, *, socket_timeout: float | None = None, retries: int) -> Any:
    """Make a client of the same server with connections of its own.

    Parameters:
      client(redis.Redis): The client to take the connection's parameters from.
      socket_timeout(float): The timeout in seconds; None keeps the client's.
      retries(int): How often a command is sent again when the connection breaks.

    Returns:
      redis.Redis: The new client.  That of a cluster shares its connections
      with the old one, timeouts included.
    """
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        own_client = copy.copy(client)
        own_client.retry = Retry(NoBackoff(), retries)
        own_client.cluster_error_retry_attempts = retries  # what redis-py 5 looks at
        return own_client
    parameters = {name: value for name, value in pool.connection_kwargs.items() if name != "connection_pool"}
    parameters.update(retry=Retry(NoBackoff(), retries), retry_on_timeout=False)
    if socket_timeout is not None:
        parameters.update(socket_timeout=socket_timeout, socket_connect_timeout=socket_timeout)
    if isinstance(pool, SentinelConnectionPool):
        own: redis.ConnectionPool = SentinelConnectionPool(
            pool.service_name,
            pool.sentinel_manager,
            is_master=pool.is_master,
            check_connection=pool.check_connection,
            connection_class=pool.connection_class,
            **parameters,
        )
    else:
        own = redis.ConnectionPool(connection_class=pool.connection_class, **parameters)
    new_client = redis.Redis(connection_pool=own)
    new_client.auto_close_connection_pool = True
    return new_client


def drop_idle_connections(client: Any) -> None:
    """Let the next commands of a client connect anew, to whatever its address leads to by now."""
    pool = getattr(client, "connection_pool", None)
    if pool is not None:
        with contextlib.suppress(TypeError):  # the BlockingConnectionPool of redis-py 5 has no such choice
            pool.disconnect(inuse_connections=False)


def socket_timeout_of(client: Any) -> float | None:
    """The socket timeout of a client's connections in seconds, or None."""
    pool = getattr(client, "connection_pool", None)
    parameters = client.get_connection_kwargs() if pool is None else pool.connection_kwargs
    timeout = parameters.get("socket_timeout")
    return float(timeout) if timeout else None
