"""Jobs that stalled too often, and what is told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from dramatiq import Broker, Message, Middleware

from dramatiq_echomq import StalledCheck, StalledChecker
from dramatiq_echomq.signals import send_signal

from .brokers import working
from .job_data import id_of
from .queue_data import LIMIT, key, put, state

#: What middleware hears of a stalled-out job: no more, and nothing twice.
HEARD = ["before_process_message", "after_process_message", "before_nack", "after_nack"]

#: The hooks that a job might be told by, in the order in which Dramatiq calls them.
HOOKS = [
    f"{when}_{what}"
    for what in ("enqueue", "delay_message", "process_message", "skip_message", "ack", "nack")
    for when in ("before", "after")
    if (when, what) != ("before", "skip_message")
]


class Hooks(Middleware):
    """Notes which hooks are called, for one message or for all.

    Attributes:
      calls(list): The names of hooks with their message and what else they were given.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.calls]

    def __getattribute__(self, name: str) -> Any:
        if name not in HOOKS:
            return super().__getattribute__(name)

        def hook(broker: Broker, message: Any, *args: Any, **kwargs: Any) -> None:
            self.calls.append((name, message, {**kwargs, "failed": getattr(message, "failed", None)}))

        hook.__name__ = name
        return hook


def lose_worker(client: redis.Redis, job_id: str, stalls: int = 1, queue: str = "default") -> None:
    """Let a job have been taken by a worker that died, and another time before that."""
    client.lrem(key(queue, "wait"), 1, job_id)
    client.hset(key(queue, job_id), mapping={"ats": 2, "stc": stalls, "pb": "host:1"})
    put(client, queue, active=[job_id], stalled={job_id})


def worker_dies(client: redis.Redis) -> StalledCheck:
    """All locks end, and two checks go by."""
    for lock in client.scan_iter("*:lock"):
        client.delete(lock)
    StalledChecker(client).check("q")
    return StalledChecker(client).check("q")


def check(client: redis.Redis, broker: Broker, queue: str = "default", **settings: Any) -> None:
    """Make a check and let the broker hear of it, as a sweeper does."""
    StalledChecker(client, **settings).check(queue)
    send_signal(broker, "after_queue_swept", queue)


def sent_to(client: redis.Redis, queue: str) -> list[list[Any]]:
    """The arguments of the messages of a queue."""
    jobs = (value for value in state(client, queue).values() if isinstance(value, dict))
    return [json.loads(job["data"])["args"] for job in jobs if "data" in job]


def by_sweep(client: redis.Redis, broker: Broker, message: Message) -> None:
    """A check fails the job."""
    lose_worker(client, id_of(message))
    check(client, broker)


def at_fetch(client: redis.Redis, broker: Broker, message: Message) -> None:
    """A sweeper of BullMQ leaves a job that stalled too often in wait, to be failed at its next fetch."""
    client.hset(f"emq:default:{id_of(message)}", mapping={"defa": LIMIT, "stc": 2, "pb": "host:1"})
    with working(broker, queues={"default"}):
        broker.join("default", timeout=20_000)


#: The ways in which a stall ends in failure.
WAYS = pytest.mark.parametrize("stall_out", [by_sweep, at_fetch])
