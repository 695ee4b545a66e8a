"""How workers end."""

from __future__ import annotations

import pytest

from dramatiq_echomq import EchoMQBroker

from .fleet import Fleet
from .jobs import add, id_of
from .queues import state
from .servers import Server, wait_until


@pytest.fixture
def direct():
    with Server() as server, server.client() as direct:
        direct.url = server.url
        yield direct


def test_a_sigterm_to_the_master_leaves_nothing_active_and_all_else_in_order(direct, client):
    broker = EchoMQBroker(url=direct.url)
    ids = [id_of(add(broker, number, 200)) for number in range(100)]
    with Fleet(direct.url, client, threads=4) as fleet:
        wait_until(lambda: direct.zcard("emq:q:completed") >= 4)
        assert fleet.terminate() == [0]
    found = state(direct)
    assert "active" not in found
    assert not found["locks"]
    assert len(found["completed"]) + len(found["wait"]) == 100
    left = ids[len(found["completed"]) :]
    assert found["wait"] == left[::-1]
    assert all(found[job_id].get("ats", "0") == "0" and "stc" not in found[job_id] for job_id in left)


def test_urgent_messages_are_back_in_order_too(direct, client):
    broker = EchoMQBroker(url=direct.url)
    ids = [id_of(add(broker, number, 200, broker_priority=2)) for number in range(60)]
    with Fleet(direct.url, client, threads=2) as fleet:
        wait_until(lambda: direct.zcard("emq:q:completed") >= 4)
        assert fleet.terminate() == [0]
    completed = direct.zcard("emq:q:completed")
    assert [job_id.decode() for job_id in direct.zrange("emq:q:prioritized", 0, -1)] == ids[completed:]
    assert "active" not in state(direct)


def test_a_stop_while_redis_restarts_leaves_nothing_active(client):
    with Server("--appendonly", "yes") as server, server.client() as direct:
        broker = EchoMQBroker(url=server.url)
        for number in range(60):
            add(broker, number, 300)
        with Fleet(server.url, client, threads=2) as fleet:
            wait_until(lambda: client.llen("ran") >= 2)
            server.kill()
            fleet.ask_to_end()
            wait_until(lambda: "Shutting down" in fleet.log())
            server.start()
            assert fleet.terminate() == [0]
        found = state(direct)
        assert "active" not in found
        assert not found["locks"]
        assert client.llen("ran") == client.llen("began") == len(found["completed"]) == 60 - len(found["wait"])


def test_an_idle_worker_stops_though_redis_is_gone(client):
    with Server() as server, Fleet(server.url, client) as fleet:
        server.kill()
        assert fleet.terminate() == [0]
