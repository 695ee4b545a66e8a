from __future__ import annotations

import re
from typing import Any

import redis

from ..errors import ServerTooOld

#: The first version of Redis that has all the commands that the scripts call.
OLDEST = (6, 2)


def require_version(client: Any) -> None:
    """Validate that a server is new enough for the scripts.

    Raises:
      ServerTooOld: When it says that it is not.  One that does not say
        its version passes.
    """
    version = _version_of(client)
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise ServerTooOld(version, _address_of(client))


def require_known_commands(client: Any, error: redis.ResponseError) -> None:
    """Say what an error means that no server new enough returns.

    Raises:
      ServerTooOld: When the server does not know a command.
    """
    if re.search(r"Unknown Redis command|unknown command .?HELLO", str(error)):
        raise ServerTooOld("", _address_of(client)) from error


def _version_of(client: Any) -> str:
    """The version that a server says it has, or nothing.  HELLO takes no right; before Redis 6 only INFO tells."""
    target = {} if hasattr(client, "connection_pool") else {"target_nodes": "random"}
    try:
        reply = client.execute_command("HELLO", **target)
        facts = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        version = next((value for name, value in facts.items() if name in ("version", b"version")), "")
        return version.decode() if isinstance(version, bytes) else str(version)
    except (redis.ConnectionError, redis.TimeoutError):
        raise  # what does not answer is not asked again
    except redis.ResponseError as error:
        if "unknown command" not in str(error):
            return ""
    except Exception:
        return ""
    try:
        return str(client.execute_command("INFO", "server").get("redis_version", ""))
    except Exception:
        return ""


def _address_of(client: Any) -> str:
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        return "the addresses of the cluster"
    parameters = pool.connection_kwargs
    return str(parameters.get("path") or f"{parameters.get('host')}:{parameters.get('port')}")
