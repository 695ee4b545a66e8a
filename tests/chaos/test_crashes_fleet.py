"""What it costs Redis to look at a thousand workers of which ten die."""

from __future__ import annotations

import random
import resource
import time

import pytest
import redis

from dramatiq_echomq.protocol.registrations import connection_name
from dramatiq_echomq.recovery import crashes

from ..support.brokers import recoverer_of
from ..support.queue_data import put
from ..support.servers import Server, wait_until
from ..support.worker_data import lock, register, registered, registration

WORKERS, DEAD, JOBS_EACH = 1_000, 10, 2

#: The commands that a look sends; what scripts call has its time in theirs.
SENT = ("evalsha", "eval", "client|list", "info", "zrem")


@pytest.fixture(autouse=True)
def room_for_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * WORKERS + 500  # the server in this machine inherits it
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("too few open files are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(server: Server, admin: redis.Redis) -> list[tuple[redis.Redis, bytes]]:
    """A thousand workers, each with a connection and jobs."""
    run_id, workers = admin.info("server")["run_id"], []
    for number in range(WORKERS):
        worker_id = f"{number:032x}"
        own = server.client(single_connection_client=True, client_name=connection_name(worker_id))
        workers.append((own, registration(worker_id, own.client_id(), run_id)))
    jobs = {f"{number:032x}": [f"{number}-{job}" for job in range(JOBS_EACH)] for number in range(WORKERS)}
    active = [job_id for ids in jobs.values() for job_id in ids]
    put(admin, active=active, jobs={job_id: {} for job_id in active})
    for worker_id, ids in jobs.items():
        lock(admin, worker_id, *ids)
    register(admin, *(text for _, text in workers))
    return workers


def server_ms(admin: redis.Redis) -> float:
    stats = admin.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("usec", 0) for name in SENT) / 1000


def test_a_look_costs_the_server_at_most_2_ms(monkeypatch):
    monkeypatch.setattr(crashes, "PERIOD", 0.1)
    monkeypatch.setattr(crashes, "THROTTLE", 90)
    with Server("--maxclients", "2000") as server, server.client() as admin:
        workers = connect(server, admin)
        recoverer, recorder = recoverer_of(admin, crash_grace=150)
        costs: list[float] = []

        def look() -> None:
            admin.config_resetstat()
            assert recoverer.crashes.look() == crashes.PERIOD
            costs.append(server_ms(admin) - own_cost)

        admin.config_resetstat()
        own_cost = server_ms(admin)
        while len(costs) < 10 or (min(costs) > 2 and len(costs) < 200):
            look()
            time.sleep(crashes.PERIOD)
        quiet = min(costs)  # what else runs on this machine makes it more
        costs.clear()
        for own, _ in workers[100 : 100 + DEAD]:
            own.connection.disconnect()
        wait_until(lambda: admin.info("clients")["connected_clients"] <= WORKERS - DEAD + 3)
        dice, deadline = random.Random(1), time.monotonic() + 60
        while len(registered(admin)) > WORKERS - DEAD and time.monotonic() < deadline:
            look()
            time.sleep(crashes.PERIOD * dice.uniform(1, 2))  # so that each look asks for another share
        print("looks with ten dead ones:", *(f"{ms:.2f}" for ms in costs), f"ms; without: {quiet:.2f} ms")

        recovered = {job_id for _, ids in recorder.named("recovered") for job_id in ids}
        assert recovered == {f"{number}-{job}" for number in range(100, 100 + DEAD) for job in range(JOBS_EACH)}
        assert len(registered(admin)) == WORKERS - DEAD
        assert quiet <= 2
        for own, _ in workers:
            own.close()
