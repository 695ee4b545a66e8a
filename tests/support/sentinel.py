"""A master, a replica, and a Sentinel that makes the one the other when it is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import redis
from redis.sentinel import Sentinel

from .servers import Server, server_binary, wait_until

NAME = "master"


class SentinelServer(Server):
    """A Sentinel that watches one master."""

    def __init__(self, master: Server) -> None:
        super().__init__()
        self.config = self.directory / "sentinel.conf"
        self.config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n"
            f"sentinel monitor {NAME} 127.0.0.1 {master.port} 1\n"
            f"sentinel down-after-milliseconds {NAME} 500\n"
            f"sentinel failover-timeout {NAME} 3000\n"
        )

    def command(self) -> list[str]:
        return [server_binary(), str(self.config), "--sentinel"]


@contextlib.contextmanager
def sentinel_of_two() -> Iterator[tuple[Server, Sentinel]]:
    """The master, and a Sentinel as redis-py knows it, once a replica is in step."""
    with Server() as master, Server("--replicaof", "127.0.0.1", str(master.port)) as replica:
        with replica.client() as direct:
            wait_until(lambda: direct.info("replication")["master_link_status"] == "up")
        with SentinelServer(master) as server:
            sentinel = Sentinel([("127.0.0.1", server.port)], socket_timeout=1)
            wait_until(lambda: _replicas(sentinel))
            yield master, sentinel


def kill_in_step(master: Server) -> None:
    """Kill a master once its replica has all that it has."""
    with master.client(socket_timeout=60) as direct:
        direct.set("in step", 1)  # for WAIT looks at what its own connection wrote
        assert direct.wait(1, 50_000) == 1
    master.kill()


def port_of_master(sentinel: Sentinel) -> int:
    """The port of the master, or 0 while there is none."""
    with contextlib.suppress(redis.RedisError):
        return int(sentinel.discover_master(NAME)[1])
    return 0


def _replicas(sentinel: Sentinel) -> list:
    with contextlib.suppress(redis.RedisError):
        return sentinel.discover_slaves(NAME)
    return []
