"""What kill -9 of a worker process costs its jobs, with all settings at their defaults."""

from __future__ import annotations

import os
import signal
import statistics
import time

import pytest
import redis

from dramatiq_echomq import EchoMQBroker

from ..support.fleet import Fleet, two_servers
from ..support.job_data import message
from ..support.servers import wait_until

pytestmark = pytest.mark.at_once(long=True)
FULL = os.environ.get("ECHOMQ_FULL") == "1"
RUNS = 20 if FULL else 3

#: Within how many seconds all jobs, and half of them, are to start again. Beside other tests it takes longer, and
#: still not nearly as long as a lock that ends.
LONGEST, MEDIAN = (8, 5) if FULL else (25, 15)
JOBS = 8


def starts(notes: redis.Redis) -> list[tuple[int, float, int]]:
    """Each start of a job, in their order: which job, when, and in which process."""
    found = (line.split() for line in notes.lrange("starts", 0, -1))
    return [(int(number), float(at), int(pid)) for number, at, pid in found]


def kill_one_of_two(url: str, direct: redis.Redis, notes: redis.Redis) -> list[float]:
    """Kill a worker that runs all jobs beside one that is idle.

    Returns the seconds until the second start of each.
    """
    for client in (direct, notes):
        client.flushall()
    broker = EchoMQBroker(url=url)
    with Fleet(url, notes, threads=JOBS) as busy:
        for number in range(JOBS):
            broker.enqueue(message(number, actor="outlive"))
        first = wait_until(lambda: len(found := starts(notes)) == JOBS and found, timeout=60)
        with Fleet(url, notes, threads=JOBS) as idle:
            wait_until(lambda: len(idle.pids()) == 1 and direct.zcard("emq:q:echomq:workers") == 2, timeout=60)
            (victim,) = {pid for *_, pid in first}
            os.kill(victim, signal.SIGKILL)
            killed_at = time.time()
            wait_until(lambda: direct.zcard("emq:q:completed") == JOBS, timeout=60)
            logs = busy.log() + idle.log()
    broker.close()
    again = starts(notes)[JOBS:]
    assert sorted(number for number, *_ in again) == list(range(JOBS))
    assert f":{victim} is gone, its connection to Redis has closed. {JOBS} jobs of queue 'q' that it ran" in logs
    return [at - killed_at for _, at, _ in again]


@pytest.mark.timeout(900)
def test_the_jobs_of_a_killed_worker_start_again_within_seconds():
    with two_servers() as (server, direct, notes):
        runs = [kill_one_of_two(server.url, direct, notes) for _ in range(RUNS)]
    seconds = sorted(second for run in runs for second in run)
    print(f"{RUNS} kills: second start after {statistics.median(seconds):.2f} s, at most {seconds[-1]:.2f} s")
    assert seconds[-1] < LONGEST
    assert statistics.median(seconds) < MEDIAN
