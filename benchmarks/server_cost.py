"""What work costs the server, as it counts itself."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import redis

NO_OPS = Path(__file__).parent / "programs" / "bullmq_no_ops.mjs"

Readings = defaultdict[str, list[float]]


class Watch:
    """What the server does meanwhile, for each message."""

    def __init__(self, client: redis.Redis, readings: Readings, cpu: str, messages: int, commands_label: str) -> None:
        self.client, self.readings, self.messages = client, readings, messages
        self.cpu_label, self.commands_label = cpu, commands_label

    def __enter__(self) -> None:
        self.cpu, self.commands = server_cpu(self.client), commands(self.client)

    def __exit__(self, *_: object) -> None:
        self.readings[self.cpu_label].append((server_cpu(self.client) - self.cpu) / self.messages * 1e6)
        if self.commands_label:
            self.readings[self.commands_label].append((commands(self.client) - self.commands) / self.messages)


def server_cpu(client: redis.Redis) -> float:
    found = client.info("cpu")
    return float(found["used_cpu_user"] + found["used_cpu_sys"])


def commands(client: redis.Redis) -> int:
    stats = client.info("commandstats")
    return sum(each["calls"] for name, each in stats.items() if name != "cmdstat_info")


def bullmq_cost(port: int, messages: int) -> tuple[float, float]:
    """What adding a message and processing it costs the server with BullMQ on Node.js, in µs."""
    client = redis.Redis(port=port)
    client.flushall()
    found = []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(["node", NO_OPS, f"redis://127.0.0.1:{port}", str(messages)], **pipes) as program:
        for _ in range(2):
            before = server_cpu(client)
            program.stdout.readline()
            found.append((server_cpu(client) - before) / messages * 1e6)
            if program.poll() is None:
                program.stdin.write(b"\n")
                program.stdin.flush()
    return found[0], found[1]
