"""Workers under gevent."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from ..support.environment import ENVIRONMENT
from ..support.queue_data import state
from ..support.servers import Server

pytest.importorskip("gevent")

WORKER = """
    from gevent import monkey

    monkey.patch_all()

    import sys
    import time

    import dramatiq
    import gevent
    from dramatiq.middleware import CurrentMessage

    from dramatiq_echomq import EchoMQBroker, LockLost

    broker = EchoMQBroker(url=sys.argv[1], lock_duration=8_000)
    broker.add_middleware(CurrentMessage())
    dramatiq.set_broker(broker)
    lost = []
    done = []


    @dramatiq.actor(queue_name="q", max_retries=1, min_backoff=1, max_backoff=1)
    def work(number):
        gevent.sleep(0.01)
        done.append(number)
        if number == 7 and done.count(7) == 1:
            raise RuntimeError("not yet")


    @dramatiq.actor(queue_name="q")
    def slow():
        job_id = CurrentMessage.get_current_message().options["echomq_job_id"]
        before = left = broker.client.pttl(f"emq:q:{job_id}:lock")
        while left <= before:  # until its lock is renewed
            gevent.sleep(0.05)
            before, left = left, broker.client.pttl(f"emq:q:{job_id}:lock")
        done.append("slow")


    @dramatiq.actor(queue_name="q")
    def loses():
        job_id = CurrentMessage.get_current_message().options["echomq_job_id"]
        broker.client.set(f"emq:q:{job_id}:lock", "of another worker")
        try:
            gevent.sleep(30)
        except LockLost:
            lost.append(1)
            raise


    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=8)
    worker.start()
    for number in range(50):
        work.send_with_options(args=(number,), delay=50 if number % 5 == 0 else None)
    slow.send()
    broker.join("q", timeout=20_000)
    print(sorted(map(str, done)) == sorted(map(str, [*range(50), 7, "slow"])))

    loses.send()
    deadline = time.monotonic() + 20
    while not lost and time.monotonic() < deadline:
        gevent.sleep(0.01)
    print("lost", len(lost))
    broker.client.delete("emq:q:active")
    broker.join("q", timeout=20_000)
    started = time.monotonic()
    worker.stop()
    print("stopped", time.monotonic() - started < 9)
    broker.close()
"""


@pytest.mark.at_once
def test_a_gevent_worker_runs_renews_retries_and_is_interrupted():
    with Server() as server, server.client() as client:
        command = [sys.executable, "-c", textwrap.dedent(WORKER), server.url]
        worker = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
        found = state(client)

    assert worker.returncode == 0, worker.stderr
    assert worker.stdout.splitlines() == ["True", "lost 1", "stopped True"], worker.stderr
    assert len(found["completed"]) == 52
    assert not {"wait", "active", "failed", "delayed"} & found.keys()
