"""How worker processes are known in Redis: which connection stands for each, and which connections there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis

#: For how many ms a registration counts that its worker does not refresh.
REGISTRATION_KEPT_FOR = 600_000

#: How many connections one command asks about, so that Redis is not blocked for long.
CHUNK = 200

#: What the server says to a command that it does not know or does not allow.
_REFUSED = re.compile(r"unknown (sub)?command|no permission|unsupported|not supported", re.IGNORECASE)

_RUN_ID = re.compile(rb"^run_id:(\w+)", re.MULTILINE)
_CLIENT = re.compile(rb"^id=(\d+) .*?\bname=(\S*)", re.MULTILINE)


@dataclass(frozen=True)
class WorkerRegistration:
    """A worker process, and the connection that stands for it.

    Parameters:
      worker_id(str): What its lock tokens begin with.
      client_id(int): The connection's ``CLIENT ID``.
      run_id(str): The server's ``run_id``: after a restart, ids start anew.
      name(str): The worker, for people: its host and process id.
    """

    worker_id: str
    client_id: int
    run_id: str
    name: str

    def encode(self) -> bytes:
        """Return what Redis holds of it."""
        text = f"{self.worker_id} {self.client_id} {self.run_id} {self.name}"
        return text.encode("utf-8", "surrogateescape")

    @classmethod
    def decode(cls, text: bytes) -> WorkerRegistration | None:
        """Return what Redis holds, or None when it is no registration."""
        parts = text.decode("utf-8", "surrogateescape").split(" ", 3)
        if len(parts) != 4 or not parts[0] or not (parts[1].isascii() and parts[1].isdecimal()):
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])


def connection_name(worker_id: str) -> str:
    """Return what the connection that stands for a worker is called."""
    return f"echomq-worker:{worker_id}"


def server_of(client: Any, key: str) -> Any:
    """Return the client itself, or for a cluster a client of the node that holds a key."""
    if not hasattr(client, "get_node_from_key"):
        return client
    return client.get_redis_connection(client.get_node_from_key(key))


def connections_of(server: Any, client_ids: Sequence[int]) -> dict[int, str]:
    """Return the names of those of these connections that there are.

    Parameters:
      server(redis.Redis)
      client_ids(Sequence[int])

    Raises:
      redis.RedisError: When Redis cannot be used, or does not tell.
    """
    found: dict[int, str] = {}
    for start in range(0, len(client_ids), CHUNK):
        ids = client_ids[start : start + CHUNK]
        # As two words, so that redis-py does not parse what is not asked for.
        listed = server.execute_command("CLIENT", "LIST", "ID", *ids, NEVER_DECODE=True)
        found.update((int(number), name.decode("utf-8", "replace")) for number, name in _CLIENT.findall(listed))
    return found


def run_id_of(info: bytes) -> str:
    """Return the server's run id out of its reply to ``INFO server``, empty when it does not say."""
    found = _RUN_ID.search(info)
    return found.group(1).decode() if found else ""


def is_refusal(error: Exception) -> bool:
    """Return whether the server does not know a command, or does not let this user send it."""
    return isinstance(error, redis.ResponseError) and _REFUSED.search(str(error)) is not None
