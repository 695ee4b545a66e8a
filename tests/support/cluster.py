"""A cluster of one server."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Iterator

from .environment import ENVIRONMENT
from .servers import Server, free_port, server_binary, wait_until

SLOTS = range(16_384)


@contextlib.contextmanager
def cluster_of_one(*options: str, without: Iterable[str] = ()) -> Iterator[Server]:
    """A server that is a cluster, with all slots but those of some keys.

    Parameters:
      options(str): Configuration, as of ``Server``.
      without(Iterable[str]): Keys whose slots no node has.
    """
    with _node("--cluster-enabled", "yes", *options) as server, server.client() as node:
        missing = {node.cluster("KEYSLOT", key) for key in without}
        node.execute_command("CLUSTER", "ADDSLOTS", *(slot for slot in SLOTS if slot not in missing))
        wait_until(lambda: is_up(node))
        yield server


def is_up(node) -> bool:
    return node.cluster("INFO")["cluster_state"] == "ok"


def _node(*options: str) -> Server:
    """A server whose port for other nodes is free.  Before Redis 7 that is its own + 10,000, so it
    must be between those of tests and those that the system gives to connections.
    """
    command = [server_binary(), "--version"]
    version = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    if "v=6." not in version:
        return Server("--cluster-port", str(free_port()), *options)
    return Server(*options, port=next(port for port in iter(free_port, None) if 21_000 < port < 22_768))
