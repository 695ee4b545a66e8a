"""What a worker does when calls of Redis fail."""

from __future__ import annotations

import pytest
import redis
from dramatiq.errors import ConnectionClosed
from dramatiq.middleware import Retries

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.marker_wait import MarkerWait

from ..support.faults import Faults, Log, quicken, recording_actor, running, settled
from ..support.job_data import add, message
from ..support.queue_data import state
from ..support.servers import wait_until

TAKE, FINISH, REQUEUE = "finishAndFetch-1.lua", "finishAndFetch-1.lua", "requeueJobs-1.lua"
ERRORS = [
    redis.TimeoutError("Timeout reading from socket"),
    redis.ConnectionError("Connection closed by server."),
    redis.exceptions.ReadOnlyError("You can't write against a read only replica."),
    redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    redis.exceptions.MasterDownError("Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
    redis.exceptions.ClusterDownError("CLUSTERDOWN Hash slot not served"),
    redis.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
    redis.exceptions.AuthenticationError("NOAUTH Authentication required."),
    redis.ResponseError("UNBLOCKED force unblock from blocking operation"),
    OSError("No route to host"),
]
LOST = ERRORS[:2]
EACH = pytest.mark.parametrize(
    ("error", "has_run"), [*((error, False) for error in ERRORS), *((error, True) for error in LOST)], ids=str
)


@pytest.fixture
def faults(monkeypatch):
    quicken(monkeypatch)
    return Faults(monkeypatch)


def ids(error: Exception) -> str:
    return type(error).__name__


@pytest.mark.parametrize("call", ["fetch", "ack", "nack", "requeue"])
@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_every_error_is_a_closed_connection_to_dramatiq(client, faults, call, error):
    """Other errors it takes for faults of the broker: of one that comes while a worker ends, a thread dies."""
    broker = EchoMQBroker(client=client, middleware=[])
    add(broker)
    consumer = broker.consume("q", prefetch=2, timeout=1)
    message = next(consumer)
    calls = {
        "fetch": lambda: next(broker.consume("q", prefetch=2, timeout=1)),
        "requeue": lambda: consumer.requeue([message]),
    }
    faults.plan(REQUEUE if call == "requeue" else TAKE, error, error)

    with pytest.raises(ConnectionClosed):
        calls.get(call, lambda: getattr(consumer, call)(message))()


@pytest.mark.parametrize("script", [TAKE, FINISH])
@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_every_message_runs_once_though_calls_fail(client, faults, script, error):
    broker, log = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)]), Log()
    recording_actor(broker, log)
    faults.plan(script, error, error, error)
    for number in range(6):
        add(broker, number)
    add(broker, "bad")
    with running(broker):
        wait_until(settled(broker, 6, failed=1))
    assert sorted(log.ran, key=str) == [0, 1, 2, 3, 4, 5, "bad"]
    assert faults.raised == [script] * 3
    assert not state(client)["locks"]


@pytest.mark.parametrize("script", [TAKE, FINISH])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("error", LOST, ids=ids)
def test_every_message_runs_once_though_replies_are_lost(client, faults, script, times, error):
    broker, log = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)]), Log()
    recording_actor(broker, log)
    for number in range(6):
        add(broker, number)
    add(broker, "bad")
    faults.plan(script, *[error] * times, has_run=True)
    with running(broker):
        wait_until(settled(broker, 6, failed=1))
    assert sorted(log.ran, key=str) == [0, 1, 2, 3, 4, 5, "bad"]
    assert faults.raised == [script] * times


@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_a_wait_that_fails_ends_no_consumer(client, faults, monkeypatch, error):
    start, errors = MarkerWait.start, [error, error]

    def fail(marker_wait, seconds):
        if errors:
            raise errors.pop()
        start(marker_wait, seconds)

    monkeypatch.setattr(MarkerWait, "start", fail)
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    with running(broker):
        wait_until(lambda: not errors)
        add(broker, 1)
        wait_until(settled(broker, 1))


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("error", LOST, ids=ids)
def test_prefetched_messages_wait_in_memory_for_the_next_consumer_when_close_fails(client, faults, error, has_run):
    broker = EchoMQBroker(client=client, middleware=[])
    for number in range(4):
        add(broker, number)
    first = broker.consume("q", prefetch=4, timeout=1)
    running_message = next(first)
    faults.plan(REQUEUE, error, has_run=has_run)
    first.close()
    assert faults.raised == [REQUEUE]

    second = broker.consume("q", prefetch=4, timeout=1)
    second.ack(running_message)
    found = [next(second) for _ in range(3)]
    for message_found in found:
        second.ack(message_found)
    assert settled(broker, 4)()


@EACH
def test_a_worker_that_cannot_give_back_at_first_gives_all_back_in_order(client, faults, error, has_run):
    broker, log = EchoMQBroker(client=client, middleware=[]), Log()
    recording_actor(broker, log)
    log.gate.clear()
    for number in range(12):
        add(broker, number)
    order = state(client)["wait"]
    with running(broker, threads=1) as worker:
        wait_until(lambda: any(job.runner for job in broker.in_flight.all()))
        faults.plan(REQUEUE, error, has_run=has_run)
        for thread in worker.workers:
            thread.stop()
        log.gate.set()
    assert log.ran == [0]
    assert state(client)["wait"] == order[:-1]
    assert "active" not in state(client)


@EACH
def test_a_message_whose_enqueue_failed_was_added_at_most_once(client, faults, error, has_run):
    broker = EchoMQBroker(client=client, middleware=[])
    faults.plan("addJobs-1.lua", error, has_run=has_run)
    with pytest.raises(type(error)):
        broker.enqueue(message(1))
    assert broker.get_queue_message_counts("q").waiting == int(has_run)
