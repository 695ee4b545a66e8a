"""How workers end."""

from __future__ import annotations

import pytest

from dramatiq_echomq import EchoMQBroker

from ..support.fleet import Fleet, two_servers
from ..support.job_data import add, id_of
from ..support.queue_data import state
from ..support.servers import KEEPS_DATA, wait_until

pytestmark = pytest.mark.at_once


def test_a_sigterm_to_the_master_leaves_nothing_active_and_all_else_in_order():
    with two_servers() as (server, direct, notes):
        broker = EchoMQBroker(url=server.url)
        ids = [id_of(add(broker, number, 200)) for number in range(100)]
        with Fleet(server.url, notes, threads=4) as fleet:
            wait_until(lambda: direct.zcard("emq:q:completed") >= 4)
            assert fleet.terminate() == [0]
        found = state(direct)
        assert "active" not in found
        assert not found["locks"]
        assert len(found["completed"]) + len(found["wait"]) == 100
        left = ids[len(found["completed"]) :]
        assert found["wait"] == left[::-1]
        assert all(found[job_id].get("ats", "0") == "0" and "stc" not in found[job_id] for job_id in left)


def test_urgent_messages_are_back_in_order_too():
    with two_servers() as (server, direct, notes):
        broker = EchoMQBroker(url=server.url)
        ids = [id_of(add(broker, number, 200, broker_priority=2)) for number in range(60)]
        with Fleet(server.url, notes, threads=2) as fleet:
            wait_until(lambda: direct.zcard("emq:q:completed") >= 4)
            assert fleet.terminate() == [0]
        completed = direct.zcard("emq:q:completed")
        assert [job_id.decode() for job_id in direct.zrange("emq:q:prioritized", 0, -1)] == ids[completed:]
        assert "active" not in state(direct)


def test_a_stop_while_redis_restarts_leaves_nothing_active():
    with two_servers(*KEEPS_DATA) as (server, direct, notes):
        broker = EchoMQBroker(url=server.url)
        for number in range(60):
            add(broker, number, 300)
        with Fleet(server.url, notes, threads=2) as fleet:
            wait_until(lambda: notes.llen("ran") >= 2)
            server.kill()
            fleet.ask_to_end()
            wait_until(lambda: "Shutting down" in fleet.log())
            server.start()
            assert fleet.terminate() == [0]
        found = state(direct)
        assert "active" not in found
        assert not found["locks"]
        assert notes.llen("ran") == notes.llen("started") == len(found["completed"]) == 60 - len(found["wait"])


def test_an_idle_worker_stops_though_redis_is_gone():
    with two_servers() as (server, _, notes), Fleet(server.url, notes) as fleet:
        server.kill()
        assert fleet.terminate() == [0]
