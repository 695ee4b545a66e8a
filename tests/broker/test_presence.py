"""How a worker shows that it is there."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import dramatiq
import psutil
import pytest
import redis

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker import presence
from dramatiq_echomq.protocol.registrations import WorkerRegistration, connections_of

from ..support.acl import all_but
from ..support.brokers import lines, working
from ..support.faults import quicken
from ..support.queue_data import dump
from ..support.servers import Server, wait_until
from ..support.worker_data import registered


@pytest.fixture
def broker(client):
    broker = EchoMQBroker(client=client, middleware=[])
    for name in ("q", "r"):
        broker.declare_queue(name)
    yield broker
    broker.close()


def only_registration(client, queue: str = "q") -> WorkerRegistration | None:
    [text, *others] = [*registered(client, queue)] or [b""]
    assert not others
    return WorkerRegistration.decode(text)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dramatiq-echomq-presence"]


def test_a_worker_is_registered_in_its_queues_until_it_ends(client, broker):
    with working(broker):
        worker = wait_until(lambda: only_registration(client, "r") and only_registration(client))
        assert worker.worker_id == str(broker.worker_id)
        assert worker.run_id == client.info("server")["run_id"]
        assert connections_of(client, [worker.client_id]) == {worker.client_id: f"echomq-worker:{worker.worker_id}"}
        assert only_registration(client, "r") == worker
    assert registered(client) == registered(client, "r") == {}
    assert threads() == []
    wait_until(lambda: not connections_of(client, [worker.client_id]))


@pytest.mark.parametrize(
    "options",
    [{"protocol": 2}, {"protocol": 3}, {"decode_responses": True}, {"client_name": "own"}],
    ids=str,
)
def test_any_client_will_do(redis_url, client, options):
    broker = EchoMQBroker(client=redis.Redis.from_url(redis_url, **options), middleware=[])
    broker.declare_queue("q")
    with working(broker):
        worker = wait_until(lambda: only_registration(client))
        client.client_kill_filter(_id=worker.client_id, skipme=False)
        wait_until(lambda: only_registration(client) != worker)
    assert registered(client) == {}
    broker.close()


def test_a_worker_is_registered_in_each_queue_before_its_first_job_there(client, broker, monkeypatch):
    """That job may kill it, and so may the next ones that are tried when it boots again."""
    seen = {}
    monkeypatch.setattr(presence, "LONGEST_WAIT", 20)
    monkeypatch.setattr(presence, "connections_of", lambda *given: time.sleep(0.2) or connections_of(*given))
    for queue in ("q", "r"):

        def work(queue=queue):
            seen[queue] = only_registration(client, queue)

        dramatiq.actor(work, broker=broker, actor_name=queue, queue_name=queue).send()

    with working(broker, worker_threads=2):
        wait_until(lambda: len(seen) == 2)

    assert {registration and registration.worker_id for registration in seen.values()} == {str(broker.worker_id)}


def test_a_worker_that_is_not_seen_yet_does_not_wait_for_long(client, broker, monkeypatch):
    hangs, ran = threading.Event(), threading.Event()
    monkeypatch.setattr(presence, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(presence, "connections_of", lambda *given: hangs.wait(20) and connections_of(*given))
    dramatiq.actor(ran.set, broker=broker, actor_name="work", queue_name="q").send()

    with working(broker):
        assert ran.wait(20)
        assert registered(client) == {}
        hangs.set()
        wait_until(lambda: only_registration(client))


def test_a_queue_that_is_consumed_later_is_registered_as_well(client, broker, monkeypatch):
    monkeypatch.setattr(presence, "SLICE", 0.02)
    with working(broker):
        wait_until(lambda: only_registration(client))
        broker.declare_queue("late")
        wait_until(lambda: only_registration(client, "late"))


def test_a_connection_that_closes_is_replaced_at_once(client, broker):
    with working(broker):
        for _ in range(3):
            first = wait_until(lambda: only_registration(client, "r") and only_registration(client))
            client.client_kill_filter(_id=first.client_id, skipme=False)
            # And not only when the registrations are refreshed.
            wait_until(lambda first=first: only_registration(client) not in (None, first), presence.REFRESH / 2)
            wait_until(lambda: only_registration(client) == only_registration(client, "r"), presence.REFRESH / 2)


def test_a_worker_can_boot_again(client, broker):
    for _ in range(2):
        with working(broker):
            wait_until(lambda: only_registration(client, "r") and only_registration(client))
        assert registered(client) == registered(client, "r") == {}


def test_who_only_enqueues_has_no_such_connection(client, broker):
    broker.presence.start()
    time.sleep(0.05)
    assert not [each for each in client.client_list() if each["name"].startswith("echomq-worker")]
    broker.presence.stop()
    assert threads() == []


def test_it_can_be_switched_off(client):
    broker = EchoMQBroker(client=client, middleware=[], crash_detection=False)
    broker.declare_queue("q")
    with working(broker):
        assert threads() == []
        wait_until(lambda: client.client_list(_type="normal"))
        assert registered(client) == {}
    broker.close()


def test_a_registration_that_got_lost_is_made_anew(client, broker, monkeypatch):
    monkeypatch.setattr(presence, "SLICE", 0.01)
    monkeypatch.setattr(presence, "REFRESH", 0.05)
    with working(broker):
        worker = wait_until(lambda: only_registration(client, "r") and only_registration(client))
        client.flushdb()
        wait_until(lambda: only_registration(client, "r") and only_registration(client))
        assert only_registration(client) == worker


@pytest.mark.parametrize("command", ["client|setname", "client|id", "client|list", "info"])
def test_without_the_right_it_works_on_and_says_so_once(client, caplog, command):
    caplog.set_level("INFO")
    with Server() as server, server.client() as admin:
        rights = [*all_but(command), "~*", "&*"]
        admin.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">secret", *rights)
        broker = EchoMQBroker(client=server.client(username="worker", password="secret"), middleware=[])
        broker.declare_queue("q")
        with working(broker):
            wait_until(lambda: [line for line in lines(caplog, "INFO") if "If this worker is killed" in line])
            wait_until(lambda: threads() == [])
        assert dump(admin) == {} or registered(admin) == {}
        broker.close()
    [line] = [line for line in lines(caplog) if "killed" in line]
    assert line.startswith(
        "If this worker is killed, its jobs come back once their locks have ended, and not within seconds: "
    )
    assert not lines(caplog, "WARNING", "ERROR", "CRITICAL")


@pytest.mark.parametrize("seen", [{}, {"name": ""}, {"name": "of the proxy"}])
def test_behind_a_proxy_that_pools_connections_it_is_off(client, broker, monkeypatch, caplog, seen):
    caplog.set_level("INFO")
    monkeypatch.setattr(presence, "LONGEST_RETRY", 0.05)
    monkeypatch.setattr(presence, "connections_of", lambda server, ids: {ids[0]: seen["name"]} if seen else {})
    with working(broker):
        wait_until(lambda: [line for line in lines(caplog, "INFO") if "perhaps for a proxy" in line])
        wait_until(lambda: threads() == [])
        assert registered(client) == {}


def test_a_worker_that_cannot_connect_anew_is_not_registered_any_more(client, broker, monkeypatch):
    """As when the server has no room for another connection: the others still serve."""
    with working(broker):
        worker = wait_until(lambda: only_registration(client, "r") and only_registration(client))

        def fail(*_):
            raise redis.ConnectionError("max number of clients reached")

        server_of = presence.server_of
        monkeypatch.setattr(presence, "server_of", fail)
        client.client_kill_filter(_id=worker.client_id, skipme=False)
        wait_until(lambda: registered(client) == registered(client, "r") == {})
        monkeypatch.setattr(presence, "server_of", server_of)
        wait_until(lambda: only_registration(client, "r") and only_registration(client))


def test_a_worker_ends_in_time_while_redis_is_away(monkeypatch):
    quicken(monkeypatch)
    with Server() as server:
        broker = EchoMQBroker(client=server.client(), middleware=[])
        broker.declare_queue("q")
        with working(broker), server.client() as direct:
            wait_until(lambda: only_registration(direct))
            server.kill()
            time.sleep(0.1)
            started = time.monotonic()
        assert time.monotonic() - started < 30
        assert threads() == []
        broker.close()


def test_a_child_that_a_job_forks_does_not_keep_the_connection_open(client, broker):
    """Or the worker would seem to be there after its death, for as long as the child lives."""
    with working(broker):
        worker = wait_until(lambda: only_registration(client, "r") and only_registration(client))
        goes_on = multiprocessing.get_context("fork").Event()
        child = multiprocessing.get_context("fork").Process(target=goes_on.wait, args=(20,))
        child.start()
        time.sleep(0.1)
        assert connections_of(client, [worker.client_id])  # a close in the child is none for the parent
        [row] = client.client_list(client_id=[worker.client_id])
        ends = [
            (each.fd, f"127.0.0.1:{each.laddr.port}", f"127.0.0.1:{each.raddr.port}")
            for each in psutil.Process().net_connections()
            if each.raddr
        ]
        [own] = [fd for fd, here, there in ends if (here, there) == (row["addr"], row["laddr"])]
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), own)  # which closes it here, as the kernel does when the process dies
        wait_until(lambda: not connections_of(client, [worker.client_id]))
        assert child.is_alive()
        goes_on.set()
        child.join(20)
