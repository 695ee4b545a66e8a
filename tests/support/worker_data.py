"""Workers that are registered in a queue, as data and as real connections."""

from __future__ import annotations

import time

import redis

from dramatiq_echomq.protocol.registrations import WorkerRegistration, connection_name, connections_of
from dramatiq_echomq.protocol.scripts import load

from .queue_data import key
from .servers import wait_until


def registration(worker_id: str, client_id: int = 1, run_id: str = "run", name: str = "") -> bytes:
    return WorkerRegistration(worker_id, client_id, run_id, name or f"host:{worker_id}").encode()


def register(client: redis.Redis, *texts: bytes, queue: str = "q", before: bytes = b"") -> None:
    for text in texts:
        args = [key(queue, ""), text, before, 600_000]
        load("registerWorker-1.lua")(client, [key(queue, "echomq:workers")], args)


def registered(client: redis.Redis, queue: str = "q") -> dict[bytes, str]:
    """Who is registered, and whether they were seen missing."""
    found = client.zrange(key(queue, "echomq:workers"), 0, -1, withscores=True)
    return {text: "missing" if score < 0 else "there" for text, score in found}


def note_missing(client: redis.Redis, *texts: bytes, ms: float, queue: str = "q") -> None:
    """Note workers as missing for at least so long."""
    since = int(time.time() * 1000) - ms - 1
    client.zadd(key(queue, "echomq:workers"), dict.fromkeys(texts, -since))


def lock(client: redis.Redis, worker_id: str, *job_ids: str, queue: str = "q") -> None:
    """Give a worker the locks of jobs."""
    for number, job_id in enumerate(job_ids):
        client.set(key(queue, f"{job_id}:lock"), f"{worker_id}:0:{number}", px=60_000)


def connected(redis_url: str, client: redis.Redis, worker_id: str, *, queue: str = "q") -> tuple[redis.Redis, bytes]:
    """A connection that stands for a worker, registered, and its registration."""
    own = redis.Redis.from_url(redis_url, single_connection_client=True)
    own.client_setname(connection_name(worker_id))
    text = registration(worker_id, own.client_id(), client.info("server")["run_id"])
    register(client, text, queue=queue)
    return own, text


def closed(client: redis.Redis, own: redis.Redis) -> None:
    """Close a connection, and wait until the server knows."""
    client_id = own.client_id()
    own.connection.disconnect()
    wait_until(lambda: not connections_of(client, [client_id]))
