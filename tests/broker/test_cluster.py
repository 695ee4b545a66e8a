"""The broker and its worker on a cluster."""

from __future__ import annotations

import dramatiq
import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster

from dramatiq_echomq import EchoMQBroker, QueueInspector, StalledCheckerMiddleware
from dramatiq_echomq.inspection.doctor.doctor import QueueDoctor
from dramatiq_echomq.protocol.clients import client_with
from dramatiq_echomq.protocol.keys import QueueKeys
from dramatiq_echomq.protocol.registrations import WorkerRegistration, connections_of
from dramatiq_echomq.recovery.middleware import sweeper_of

from ..support.acl import all_but
from ..support.brokers import lines, recoverer_of, working
from ..support.cluster import cluster_of_one, is_up
from ..support.queue_data import put, state
from ..support.servers import KEEPS_DATA, wait_until
from ..support.worker_data import registration

PREFIX = "{emq}"


@pytest.fixture(scope="module")
def server():
    """A cluster of one server that keeps its data."""
    with cluster_of_one(*KEEPS_DATA) as server:
        yield server


@pytest.fixture
def client(server):
    with cluster_client(server, socket_timeout=5) as client:
        client.flushall()
        yield client


def cluster_client(server, **parameters) -> RedisCluster:
    return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", server.port)], **parameters)


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[], prefix=PREFIX, lock_duration=10_000)
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100))
    yield broker
    broker.close()


def counts(broker) -> tuple[int, ...]:
    found = broker.get_queue_message_counts("q")
    return found.waiting, found.active, found.delayed, found.completed, found.failed


def test_messages_are_run_and_stalled_jobs_come_back(server, client, broker, caplog):
    actor = dramatiq.actor(lambda *_: None, actor_name="work", queue_name="q", broker=broker)

    with server.client() as node, working(broker):
        actor.send()
        actor.send_with_options(delay=100)
        put(node, prefix=PREFIX, active=["a"], jobs={"a": {"name": "work", "data": "[]"}})
        wait_until(lambda: counts(broker) == (0, 0, 0, 3, 0))
        assert state(node, prefix=PREFIX)["a"]["stc"] == "1"

    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


def test_an_idle_consumer_waits_for_longer_than_the_timeout_of_its_client(server, client):
    with cluster_client(server, socket_timeout=0.3) as own:
        consumer = EchoMQBroker(client=own, middleware=[], prefix=PREFIX).consume("q", timeout=400)
        assert [next(consumer), next(consumer)] == [None, None]
        consumer.close()


def test_a_killed_worker_is_seen_by_the_node_that_holds_its_queue(server, client, broker):
    broker.middleware.clear()
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=60_000, crash_grace=100))
    broker.declare_queue("q")
    broker.pause("q")
    workers = QueueKeys("q", PREFIX).workers
    with server.client() as node, working(broker):
        (text,) = wait_until(lambda: node.zrange(workers, 0, -1))
        alive = WorkerRegistration.decode(text)
        assert alive.client_id in connections_of(node, [alive.client_id])
        dead = registration("dead", 10**9, alive.run_id)
        put(node, prefix=PREFIX, active=["a"], jobs={"a": {}})
        node.set("{emq}:q:a:lock", "dead:0:0")
        node.zadd(workers, {dead: 1})
        wait_until(lambda: broker.get_queue_message_counts("q").paused == 1)
        wait_until(lambda: node.zrange(workers, 0, -1) == [text])
        assert state(node, prefix=PREFIX)["a"]["stc"] == "1"


@pytest.mark.parametrize("command", ["client|list", "info"])
def test_where_the_node_of_a_queue_may_not_be_asked_crashes_are_not_looked_for_and_that_is_told_once(
    server, client, caplog, command
):
    caplog.set_level("INFO")
    with server.client() as node:
        node.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">secret", "+@all", "~*", "&*")
        node.zadd(QueueKeys("q", PREFIX).workers, {registration("a", 10**9, node.info("server")["run_id"]): 1})
    nodes = [ClusterNode("127.0.0.1", server.port)]
    with RedisCluster(startup_nodes=nodes, username="worker", password="secret", socket_timeout=5) as limited:
        with server.client() as node:  # not before: redis-py 5.0 asks for INFO when it connects
            node.execute_command("ACL", "SETUSER", "worker", *all_but(command))
        recoverer, recorder = recoverer_of(limited, prefix=PREFIX, stalled_interval=60_000)
        sweeper = sweeper_of(recoverer)
        for _ in range(3):
            sweeper.run_once()
    [line] = lines(caplog)
    assert line.startswith("Crashed workers are not looked for, their jobs come back once their locks have ended: ")
    assert command.split("|")[0] in line
    assert sweeper.seconds_to_wait() > 10  # for the next check, not for a look
    assert recorder.signals == []


def test_a_cluster_that_is_away_for_a_while_loses_nothing(server, broker, caplog, monkeypatch):
    monkeypatch.setattr("dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.1)
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.1)
    runs = []

    def work(number):
        runs.append(number)
        if number == 0:
            server.kill()

    actor = dramatiq.actor(work, actor_name="work", queue_name="q", broker=broker)
    actor.send(0), actor.send(1)

    with working(broker):
        wait_until(lambda: "Failed to post_process_message" in caplog.text)
        broker.locks.renew()
        server.start()
        wait_until(lambda: up_again(server))
        wait_until(lambda: counts(broker) == (0, 0, 0, 2, 0))
        wait_until(lambda: broker.in_flight.all() == [])

    assert runs == [0, 1]
    assert [line.split(":")[0] for line in lines(caplog, "WARNING")] == ["Locks cannot be renewed for now"]
    assert "unexpected" not in caplog.text.lower()


def up_again(server) -> bool:
    with server.client() as node:
        return is_up(node)


def test_a_client_that_takes_jobs_sends_no_call_twice_by_itself(client, monkeypatch):
    calls = []

    def time_out(*args, **_):
        calls.append(args)
        raise redis.TimeoutError

    own_client = client_with(client, resending=0)
    monkeypatch.setattr(own_client, "_execute_command", time_out)
    with pytest.raises(redis.TimeoutError):
        own_client.get("{emq}")

    assert len(calls) == 1


def test_queues_are_looked_at_and_repaired(client):
    put(client, prefix=PREFIX, jobs={"a": {}, "b": {}}, wait=["a"], failed={"b": 1}, meta={"version": "echomq:1"})
    inspector = QueueInspector(client, prefix=PREFIX)

    (queue,) = inspector.queues()
    assert (queue.name, queue.counts.waiting, queue.workers) == ("q", 1, ())
    assert inspector.retry("q", inspector.failed_ids("q")).done == ("b",)
    assert [job.job_id for job in inspector.search("q", "wait")] == ["a", "b"]
    assert [finding.kind for finding in QueueDoctor(client, prefix=PREFIX).examine("q")] == ["no-worker"]
