"""Messages of a RedisBroker, and the jobs they became."""

from __future__ import annotations

import json

from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker
from dramatiq.common import current_millis

from .job_data import message


def send(old_broker: RedisBroker, *numbers: int, delay: int | None = None, **options) -> list[str]:
    """Send messages with these arguments, and return their message ids."""
    return [old_broker.enqueue(message(number, **options), delay=delay).message_id for number in numbers]


def fetch(old_broker: RedisBroker, count: int, *, worker: str, heard_of: float = 0, queue: str = "q") -> list[Message]:
    """Fetch messages as a worker that was heard of so many seconds ago."""
    old_broker.broker_id = worker
    messages = [Message.decode(data) for data in old_broker.do_fetch(queue, count)]
    old_broker.client.zadd("dramatiq:__heartbeats__", {worker: current_millis() - heard_of * 1000})
    return messages


def arguments(client) -> list[int]:
    """What the jobs that wait are about, the next one first."""
    jobs = reversed(client.lrange("emq:q:wait", 0, -1))
    return [json.loads(client.hget(f"emq:q:{job_id.decode()}", "data"))["args"][0] for job_id in jobs]


def old_keys(client) -> set[bytes]:
    return {key for key in client.scan_iter("dramatiq:*") if key != b"dramatiq:__heartbeats__"}
