"""What becomes of jobs when the threads that were to run them have died, as interrupts can make them."""

from __future__ import annotations

from queue import Queue
from types import SimpleNamespace

import dramatiq
import pytest
from dramatiq.threading import raise_thread_exception

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import working
from ..support.job_data import add, id_of
from ..support.queue_data import state
from ..support.servers import wait_until


@pytest.mark.parametrize("dead", [1, 2])
def test_what_no_thread_will_run_is_given_back(client, broker, dead):
    ids = [id_of(add(broker, number)) for number in range(2)]
    alive = [True, True]
    threads = [SimpleNamespace(is_alive=lambda at=at: alive[at]) for at in range(2)]
    worker = SimpleNamespace(worker_threads=2, workers=threads, work_queue=Queue())
    broker.in_flight.threads.boot(worker)
    consumer = broker.consume("q", prefetch=2, timeout=1)
    messages = [next(consumer), next(consumer)]
    for message in messages:
        worker.work_queue.put(SimpleNamespace(message=message))
    alive[:dead] = [False] * dead

    def is_given_back() -> bool:  # threads are counted now and then
        assert next(consumer) is None
        return "wait" in state(client)

    wait_until(is_given_back)
    found = state(client)
    assert found["wait"] == ids[2 - dead :][::-1]
    assert found.get("active", []) == ids[: 2 - dead]
    assert found["locks"] == set(ids[: 2 - dead])
    assert [message.job.is_refused for message in messages] == [False] * (2 - dead) + [True] * dead
    consumer.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_whose_threads_are_all_dead_keeps_no_job_from_others(client):
    broker = EchoMQBroker(client=client, middleware=[])
    work = dramatiq.actor(lambda: None, actor_name="work", queue_name="q", broker=broker)

    with working(broker, worker_threads=2) as worker:
        for thread in worker.workers:
            raise_thread_exception(thread.ident, SystemExit)
        wait_until(lambda: not any(thread.is_alive() for thread in worker.workers))
        for _ in range(10):
            work.send()
        wait_until(lambda: "active" not in state(client) and len(state(client)["wait"]) == 10)
        other = EchoMQBroker(client=client, middleware=[])
        dramatiq.actor(lambda: None, actor_name="work", queue_name="q", broker=other)
        with working(other):
            wait_until(lambda: len(state(client).get("completed", [])) == 10)
        other.close()
    broker.close()
