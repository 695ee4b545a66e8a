"""A worker is killed between failing a stalled job and telling of it: the next worker tells."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import dramatiq
import pytest
from dramatiq.results import ResultFailure, Results
from dramatiq.results.backends import RedisBackend

from dramatiq_echomq import EchoMQBroker

from ..support.environment import ENVIRONMENT
from ..support.failures import lose_worker
from ..support.job_data import id_of, message
from ..support.queue_data import LIMIT, state
from ..support.servers import Server

WORKER = """
    import os, signal, sys, time
    import dramatiq
    from dramatiq.results import Results
    from dramatiq.results.backends import RedisBackend
    from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware
    from dramatiq_echomq.broker import stalled_failures

    url, fate = sys.argv[1:]
    stalled_failures.LEASE = 300


    class IsKilled(dramatiq.Middleware):
        def after_process_message(self, broker, message, *, result=None, exception=None):
            if fate == "killed":
                os.kill(os.getpid(), signal.SIGKILL)


    broker = EchoMQBroker(url=url, middleware=[Results(backend=RedisBackend(url=url)), IsKilled()])
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100))
    dramatiq.actor(lambda: None, broker=broker, actor_name="work", store_results=True)
    worker = dramatiq.Worker(broker, worker_timeout=20, worker_threads=1)
    worker.start()
    while sys.stdin.readline():
        pass
    worker.stop()
"""


def worker(server: Server, fate: str) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(WORKER), server.url, fate]
    return subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, text=True)


@pytest.mark.at_once
def test_a_result_comes_although_the_worker_that_was_to_tell_it_was_killed():
    with Server() as server, server.client() as client:
        backend = RedisBackend(client=client)
        broker = EchoMQBroker(client=client, middleware=[Results(backend=backend)])
        dramatiq.actor(lambda: None, broker=broker, actor_name="work", store_results=True)
        sent = broker.enqueue(message(queue="default"))
        lose_worker(client, id_of(sent))

        with worker(server, "killed") as killed:
            assert killed.wait(60) == -signal.SIGKILL
        assert list(state(client, "default")["failed"]) == [id_of(sent)]

        with worker(server, "well") as well:
            try:
                with pytest.raises(ResultFailure, match=f"JobStalled: {LIMIT}"):
                    sent.get_result(backend=backend, block=True, timeout=60_000)
            finally:
                well.stdin.close()
                well.wait(60)
        broker.close()
