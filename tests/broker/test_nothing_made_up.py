"""Whatever happens to jobs, in whichever order: none is made up, none is in two places, nothing is left over."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dramatiq_echomq import EchoMQBroker, QueueInspector, StalledChecker

from ..support.job_data import add, id_of
from ..support.queue_data import put, state

pytestmark = pytest.mark.usefixtures("clock")

STATES = ("wait", "active", "completed", "failed", "delayed", "prioritized", "paused")
NEXT = {"name": "work", "data": "[]", "opts": json.dumps({"de": {"id": "d", "keepLastIfActive": True}})}


class Worker:
    """A worker process, as far as Redis knows it."""

    def __init__(self, client) -> None:
        broker = EchoMQBroker(client=client, middleware=[], keep_completed=3, keep_failed=3)
        self.consumer = broker.consume("q", prefetch=4, timeout=1)
        self.holds: list = []

    def take(self) -> None:
        message = next(self.consumer)
        if message is not None:
            self.holds.append(message)

    def end(self, number: int, how: str) -> None:
        if self.holds:
            message = self.holds.pop(number % len(self.holds))
            getattr(self.consumer, how)([message] if how == "requeue" else message)


@dataclasses.dataclass
class Queue:
    """A queue, and what may happen to it. Every step takes a number, which chooses."""

    client: object

    def __post_init__(self) -> None:
        self.workers = [Worker(self.client), Worker(self.client)]
        self.broker = EchoMQBroker(client=self.client, middleware=[])
        self.ids: list[str] = []

    def id(self, number: int) -> str:
        return self.ids[number % len(self.ids)] if self.ids else "none"

    def add(self, number: int) -> None:
        self.ids.append(id_of(add(self.broker, **({"broker_priority": 2} if number % 3 == 0 else {}))))

    def add_follower(self, number: int) -> None:
        """As BullMQ does for a job whose deduplication id an active one has."""
        job_id = self.id(number)
        if self.client.lpos("emq:q:active", job_id) is not None and self.client.exists(f"emq:q:{job_id}"):
            self.client.hset(f"emq:q:{job_id}", "deid", "d")
            self.client.set("emq:q:de:d", job_id)
            put(self.client, **{"dn:d": NEXT})

    def take(self, number: int) -> None:
        self.workers[number % 2].take()

    def ack(self, number: int) -> None:
        self.workers[number % 2].end(number // 2, "ack")

    def nack(self, number: int) -> None:
        self.workers[number % 2].end(number // 2, "nack")

    def requeue(self, number: int) -> None:
        self.workers[number % 2].end(number // 2, "requeue")

    def lose_hash(self, number: int) -> None:
        self.client.delete(f"emq:q:{self.id(number)}")

    def lose_lock(self, number: int) -> None:
        self.client.delete(f"emq:q:{self.id(number)}:lock")

    def check(self, number: int) -> None:
        StalledChecker(self.client, batch_size=1 + number % 5).check("q")

    def retry(self, number: int) -> None:
        self.broker.retry("q", self.id(number))

    def remove(self, number: int) -> None:
        if self.ids:
            QueueInspector(self.client).remove("q", [self.id(number)])


STEPS = [name for name, value in vars(Queue).items() if callable(value) and name[0] != "_" and name != "id"]


@settings(max_examples=80)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1_000)), max_size=60))
def test_whatever_happens(client, steps):
    client.flushdb()
    queue = Queue(client)

    for name, number in steps:
        getattr(queue, name)(number)
        found = state(client)
        places = Counter(job_id for name in STATES for job_id in found.get(name, ()))
        hashes = {name for name in found if client.type(f"emq:q:{name}") == b"hash"} - {"meta", "dn:d"}
        assert not [job_id for job_id in hashes if {"name", "data"} - found[job_id].keys()]
        assert not [job_id for job_id, count in places.items() if count > 1]
        assert found["locks"] <= set(found.get("active", ()))
        if "dn:d" in found:
            assert found.get("de:d") in {*queue.ids, *found}
