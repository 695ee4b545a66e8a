"""How long checks take, beside the script that the `bullmq` package does the same with.

    python benchmarks/sweep.py             about 2 minutes
    python benchmarks/sweep.py --million   1,000,000 jobs as well, in about 1 GB of memory

Both look at the same queue on the same server, twice as for a job whose worker died: the
first check marks, the second one brings back. Prints tables in reStructuredText, and ends
with an error when a target is missed. Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import redis
from bullmq.redis_connection import SCRIPT_DEFINITIONS, loadScript
from longest_ping import LongestWait, pinging

sys.path.insert(0, str(Path(__file__).parent.parent))  # where the tests and their server are

from dramatiq_echomq import StalledChecker
from dramatiq_echomq.protocol.keys import QueueKeys
from tests.support.servers import Server

KEYS = QueueKeys("bench")
BESIDE = [("dead", 1_000), ("dead", 10_000), ("dead", 20_000), ("healthy", 20_000), ("healthy", 100_000)]
ALONE = [
    ("dead", 10_000),
    ("dead", 100_000),
    ("healthy", 100_000),
    ("1 dead in 100", 50_000),
    ("1 dead in 100", 500_000),
]
REPORTED = [("healthy", 100_000), ("1 dead in 100", 100_000), ("dead", 100_000)]
MILLION = [("dead", 1_000_000), ("healthy", 1_000_000)]

#: The most that our time may be, as a part of BullMQ's.
MOST_OF_BULLMQ = {("dead", 10_000): 0.20, ("dead", 20_000): 0.15, ("healthy", 20_000): 1.2, ("healthy", 100_000): 1.2}
MOST_FOR_TEN_TIMES_THE_JOBS = 12.0
MOST_MS_OF_A_PING = 10.0

#: The most that `inspect` may take as a part of the next check. It reads each job; a check, none that has a lock.
MOST_OF_A_CHECK = 12.0

FILL = """
for number = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local id = tostring(number)
  redis.call("HSET", ARGV[1] .. id, "name", "resize", "data", '{"path":"/images/1.png"}', "opts", '{"attempts":0}',
    "timestamp", "1700000000000", "delay", "0", "priority", "0", "processedOn", "1700000000000", "ats", "1")
  redis.call("LPUSH", KEYS[1], id)
  if ARGV[4] == "healthy" or ARGV[4] == "1 dead in 100" and number % 100 > 0 then
    redis.call("SET", ARGV[1] .. id .. ":lock", "token:" .. id, "PX", 3600000)
  end
end
"""


@dataclass(frozen=True)
class Times:
    """What two checks took, in ms."""

    first: float
    second: float

    @property
    def both(self) -> float:
        return self.first + self.second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--million", action="store_true", help="measure 1,000,000 jobs as well")
    parser.add_argument("--runs", type=int, default=5, help="how many runs to take the median of (default: 5)")
    options = parser.parse_args()
    with Server() as server:
        client = server.client(socket_timeout=None)  # the script of BullMQ may take longer than usual timeouts
        print(f"{_machine()}; {_server_version(client)}; bullmq {version('bullmq')}; medians of {options.runs} runs.\n")
        missed = compare(client, options.runs)
        missed += measure_alone(client, server.port, ALONE + (MILLION if options.million else []), options.runs)
        missed += measure_reports(client, server.port, options.runs)
    for target in missed:
        print(f"missed: {target}")
    sys.exit(1 if missed else 0)


def compare(client: redis.Redis, runs: int) -> list[str]:
    """Measure ours beside BullMQ's, and return the targets that were missed."""
    rows, missed = [], []
    for state, number in BESIDE:
        # In turns, so that a slow moment of the machine does not meet just one of them.
        pairs = [
            (run(client, check_of_bullmq, state, number), run(client, our_check, state, number)) for _ in range(runs)
        ]
        theirs, ours = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
        ratio = ours.both / theirs.both
        cells = [f"{theirs.both:,.1f}", f"{ours.both:,.1f}", f"{ratio:.2f}"]
        cells += [f"{theirs.second:,.1f}", f"{ours.second:,.1f}", f"{ours.second / theirs.second:.2f}"]
        rows.append([f"{number:,} {state}", *cells])
        most = MOST_OF_BULLMQ.get((state, number))
        if most and ratio > most:
            missed.append(f"{number:,} {state} took {ratio:.2f} of BullMQ's time, not at most {most}")
    head = ["jobs", "BullMQ, both", "ours, both", "ratio", "BullMQ, second", "ours, second", "ratio"]
    print_table(head, rows)
    return missed


def measure_alone(client: redis.Redis, port: int, cases: list[tuple[str, int]], runs: int) -> list[str]:
    """Measure what BullMQ's script would block Redis with for minutes."""
    rows, missed, times = [], [], {}
    for state, number in cases:
        with pinging(port) as longest:
            outcomes = [run(client, our_check, state, number, longest) for _ in range(1 if number >= 10**6 else runs)]
        times[state, number] = median(outcomes).both
        wait = statistics.median(longest.waits)
        rows.append([f"{number:,} {state}", f"{times[state, number]:,.0f}", f"{wait:.1f}", f"{max(longest.waits):.1f}"])
        if wait > MOST_MS_OF_A_PING:
            missed.append(f"at {number:,} {state} a PING waited {wait:.1f} ms, not at most {MOST_MS_OF_A_PING}")
        tenth = times.get((state, number // 10))
        if tenth and times[state, number] > MOST_FOR_TEN_TIMES_THE_JOBS * tenth:
            missed.append(
                f"{number:,} {state} took {times[state, number] / tenth:.1f} times as long as a tenth of them"
            )
    print_table(["jobs", "both checks", "longest PING, median", "longest PING, worst"], rows)
    return missed


def measure_reports(client: redis.Redis, port: int, runs: int) -> list[str]:
    """Measure what is told of jobs, beside the next check of the same ones."""
    rows, missed, checker = [], [], StalledChecker(client)
    for state, number in REPORTED:
        took: dict[str, list[float]] = {"verdicts": [], "inspect": [], "check": []}
        with pinging(port) as longest:
            for _ in range(runs):
                fill(client, state, number)
                longest.restart()
                for name, times in took.items():
                    times.append(seconds(getattr(checker, name), KEYS.queue_name) * 1000)
                longest.note()
        times = {name: statistics.median(found) for name, found in took.items()}
        ratio, wait = times["inspect"] / times["check"], statistics.median(longest.waits)
        cells = [f"{times[name]:,.0f}" for name in ("check", "verdicts", "inspect")]
        rows.append([f"{number:,} {state}", *cells, f"{ratio:.1f}", f"{wait:.1f}"])
        if ratio > MOST_OF_A_CHECK:
            missed.append(f"inspect of {number:,} {state} took {ratio:.1f} checks, not at most {MOST_OF_A_CHECK}")
    print_table(["jobs", "next check", "verdicts", "inspect", "inspect / check", "longest PING, median"], rows)
    return missed


def seconds(call: Callable[..., object], *args: object) -> float:
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def run(
    client: redis.Redis,
    check: Callable[[redis.Redis], int],
    state: str,
    number: int,
    longest: LongestWait | None = None,
) -> Times:
    """Fill the queue and check it twice."""
    fill(client, state, number)
    if longest:
        longest.restart()
    start = time.perf_counter()
    check(client)
    middle = time.perf_counter()
    recovered = check(client)
    end = time.perf_counter()
    if longest:
        longest.note()
    expected = {"dead": number, "healthy": 0, "1 dead in 100": number // 100}[state]
    assert recovered == expected, f"brought back {recovered} of {expected}"
    assert client.llen(KEYS.wait) == expected, "what was brought back does not wait"
    return Times((middle - start) * 1000, (end - middle) * 1000)


def fill(client: redis.Redis, state: str, number: int) -> None:
    client.execute_command("FLUSHALL", "SYNC")  # or the server still frees jobs while it checks others
    script = client.register_script(FILL)
    for start in range(1, number + 1, 10_000):
        script(keys=[KEYS.active], args=[KEYS.base, start, min(start + 9_999, number), state])


def our_check(client: redis.Redis) -> int:
    return StalledChecker(client).check(KEYS.queue_name).recovered


def check_of_bullmq(client: redis.Redis) -> int:
    client.delete(KEYS.stalled_check)
    script = client.register_script(loadScript(SCRIPT_DEFINITIONS["moveStalledJobsToWait"]))
    names = ["stalled", "wait", "active", "stalled-check", "meta", "paused", "marker", "events", "repeat"]
    return len(script(keys=[KEYS.base + name for name in names], args=[1, KEYS.base, int(time.time() * 1000), 30_000]))


def median(times: list[Times]) -> Times:
    return Times(statistics.median(time.first for time in times), statistics.median(time.second for time in times))


def print_table(head: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    print("\n".join([rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule, ""]), flush=True)


def _machine() -> str:
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ":unknown")
    return f"{multiprocessing.cpu_count()} cores of {model.split(':')[1].strip()}, Python {platform.python_version()}"


def _server_version(client: redis.Redis) -> str:
    info = client.info("server")
    return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"


if __name__ == "__main__":
    main()
