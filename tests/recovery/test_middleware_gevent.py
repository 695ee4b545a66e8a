from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from ..support.environment import ENVIRONMENT
from ..support.queue_data import put, state
from ..support.servers import Server

pytest.importorskip("gevent")

WORKER = """
    from gevent import monkey

    monkey.patch_all()

    import sys
    import threading
    import time

    import dramatiq
    import gevent
    from dramatiq.brokers.redis import RedisBroker

    from dramatiq_echomq import StalledCheckerMiddleware, StalledSignals

    recovered = threading.Event()
    turns = []


    class Listener(StalledSignals):
        def after_stalled_recovered(self, broker, queue_name, job_ids):
            print("recovered", queue_name, *job_ids)
            recovered.set()


    def count_turns():
        while True:
            turns.append(1)
            gevent.sleep(0.005)


    broker = RedisBroker(url=sys.argv[1])
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100))
    broker.add_middleware(Listener())
    broker.declare_queue("q")
    worker = dramatiq.Worker(broker, worker_timeout=50, worker_threads=2)
    gevent.spawn(count_turns)
    worker.start()
    assert recovered.wait(20)
    (sweeper,) = [thread for thread in threading.enumerate() if thread.name == "dramatiq-echomq-sweeper"]
    started = time.monotonic()
    worker.stop()
    assert time.monotonic() - started < 20
    assert not sweeper.is_alive()
    print("turns of others", len(turns) > 10)
"""


@pytest.mark.at_once
def test_under_gevent_jobs_are_recovered_and_no_other_greenlet_is_held_up():
    with Server() as server, server.client() as client:
        put(client, active=["a"], jobs={"a": {}})
        command = [sys.executable, "-c", textwrap.dedent(WORKER), server.url]
        worker = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
        assert worker.returncode == 0, worker.stderr
        assert worker.stdout == "recovered q a\nturns of others True\n"
        assert state(client)["wait"] == ["a"]
