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
    with Server("--cluster-enabled", "yes", *_bus_port(), *options) as server, server.client() as node:
        missing = {node.cluster("KEYSLOT", key) for key in without}
        node.execute_command("CLUSTER", "ADDSLOTS", *(slot for slot in SLOTS if slot not in missing))
        wait_until(lambda: is_up(node))
        yield server


def is_up(node) -> bool:
    return node.cluster("INFO")["cluster_state"] == "ok"


def _bus_port() -> list[str]:
    """Where nodes talk to each other: at the port + 10,000, if the server is too old to be told another one."""
    command = [server_binary(), "--version"]
    version = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    return [] if "v=6." in version else ["--cluster-port", str(free_port())]
