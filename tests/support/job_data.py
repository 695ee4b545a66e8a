"""Jobs of an EchoMQBroker as plain data, and short ways to add and take them."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections import Counter

import redis
from dramatiq import Consumer, Message, MessageProxy

from dramatiq_echomq import EchoMQBroker

from .queue_data import NOW
from .servers import wait_until

WORKER = f"{socket.gethostname()}:{os.getpid()}"
#: The fields of a job of the actor `work` that a program in another language has added.
JOB = {"name": "work", "data": "[]"}
#: One that has stalled before.
SUSPECT = {**JOB, "stc": "1"}
#: Options of an actor whose retries come soon.
FAST = {"min_backoff": 1, "max_backoff": 10}


def message(*args, actor: str = "work", queue: str = "q", **options) -> Message:
    return Message(queue_name=queue, actor_name=actor, args=args, kwargs={}, options=options)


def add(broker: EchoMQBroker, *args, delay: int | None = None, **options) -> Message:
    """Enqueue a message with these arguments and options."""
    return broker.enqueue(message(*args, **options), delay=delay)


def id_of(message: Message | MessageProxy) -> str:
    return message.options["echomq_job_id"]


def added(message: Message, **fields: str) -> dict[str, str]:
    """The hash of a job that was just added for a message, by its id."""
    options = {name: value for name, value in message.options.items() if name != "eta"}
    data = dataclasses.replace(message, options=options).encode().decode()
    return {
        "name": message.actor_name,
        "data": data,
        "opts": "{}",
        "timestamp": str(NOW),
        "delay": "0",
        "priority": "0",
        **fields,
    }


def fetched(times: int = 1, **fields: str) -> dict[str, str]:
    """The fields that a fetch adds to a job."""
    return {"processedOn": str(NOW), "pb": WORKER, "ats": str(times), **fields}


def ended(times: int = 1, **fields: str) -> dict[str, str]:
    """The fields that a fetch and the end of a job add to a job."""
    return {**fetched(times), "atm": "1", "finishedOn": str(NOW), **fields}


def take(broker: EchoMQBroker, count: int = 1, *, queue: str = "q") -> tuple[Consumer, list[MessageProxy]]:
    """Take so many messages, or fewer when there are not as many, with one consumer."""
    consumer = broker.consume(queue, prefetch=count, timeout=1)
    found = [next(consumer) for _ in range(count)]
    consumer.marker_wait.end()  # it would take the next marker away from what a test looks at
    return consumer, [message for message in found if message is not None]


def finished(client: redis.Redis) -> tuple[int, int]:
    """Return how many jobs of ``default`` are completed and how many failed; there must be no others."""
    counts = {name: client.zcard(f"emq:default:{name}") for name in ("completed", "failed", "delayed", "prioritized")}
    assert (counts["delayed"], counts["prioritized"]) == (0, 0)
    assert not client.exists("emq:default:wait", "emq:default:active")
    return counts["completed"], counts["failed"]


def fetched_at(client: redis.Redis) -> list[int]:
    """Return when the completed jobs of ``q`` were fetched, by the clock of Redis, the first one first."""
    job_ids = client.zrange("emq:q:completed", 0, -1)
    return sorted(int(client.hget(b"emq:q:" + job_id, "processedOn")) for job_id in job_ids)


def wait_until_renewed(client: redis.Redis, *locks: str | bytes, times: int = 1) -> None:
    """Wait until the time that each of these locks has left has gone up so often."""
    left = {lock: client.pttl(lock) for lock in locks}
    renewals: Counter[str | bytes] = Counter()

    def is_renewed() -> bool:
        for lock in locks:
            before, left[lock] = left[lock], client.pttl(lock)
            renewals[lock] += left[lock] > before
        return all(renewals[lock] >= times for lock in locks)

    wait_until(is_renewed)


class Boom(Exception):
    pass


def raised(text: str = "it broke") -> Boom:
    """An exception with a traceback."""
    try:
        raise Boom(text)
    except Boom as error:
        return error


def ack(broker: EchoMQBroker, result: object = None) -> None:
    """Take one job and complete it."""
    consumer, [message] = take(broker)
    message.job.result = result
    consumer.ack(message)


def nack(broker: EchoMQBroker, exception: BaseException | None = None) -> None:
    """Take one job and fail it."""
    consumer, [message] = take(broker)
    message.fail()
    message.stuff_exception(exception or raised())
    consumer.nack(message)
