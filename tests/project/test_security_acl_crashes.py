"""The rights with which the jobs of killed workers are back within seconds."""

from __future__ import annotations

import pytest

from dramatiq_echomq import EchoMQBroker, StalledCheckerMiddleware

from ..support.acl import BROKER_RIGHTS, CHECKER_RIGHTS, CRASH_RIGHTS, user
from ..support.brokers import Recorder, lines, working
from ..support.queue_data import put
from ..support.servers import wait_until
from ..support.worker_data import lock, register, registered, registration


def recovered_after_a_crash(server, rights: str) -> bool:
    """Whether a worker whose user has these rights is registered, and recovers the job of one that crashed."""
    with server.client() as admin:
        admin.flushall()
        admin.script_flush()
        broker, recorder = EchoMQBroker(client=user(server, admin, rights), middleware=[]), Recorder()
        broker.add_middleware(StalledCheckerMiddleware(crash_grace=100))
        broker.add_middleware(recorder)
        broker.declare_queue("q")
        broker.pause("q")
        put(admin, active=["1"], jobs={"1": {}})
        lock(admin, "dead", "1")
        dead = registration("dead", 10**9, admin.info("server")["run_id"])
        register(admin, dead)
        with working(broker):
            wait_until(lambda: recorder.named("recovered"))
            wait_until(lambda: (found := registered(admin)) and dead not in found)  # what is gone goes after its jobs
        broker.close()
        return recorder.named("recovered") == [("q", ("1",))]


def test_these_rights_are_enough(server, caplog):
    caplog.set_level("INFO")
    assert recovered_after_a_crash(server, f"{BROKER_RIGHTS} {CHECKER_RIGHTS} {CRASH_RIGHTS}")
    assert not [line for line in lines(caplog) if "once their locks have ended" in line]


@pytest.mark.parametrize("right", CRASH_RIGHTS.split())
def test_without_one_of_them_a_worker_works_and_says_so(server, caplog, right):
    caplog.set_level("INFO")
    rights = [each for each in CRASH_RIGHTS.split() if each != right]
    with server.client() as admin:
        admin.flushall()
        limited = user(server, admin, " ".join([BROKER_RIGHTS, CHECKER_RIGHTS, *rights]))
        broker = EchoMQBroker(client=limited, middleware=[])
        broker.add_middleware(StalledCheckerMiddleware())
        broker.declare_queue("q")
        register(admin, registration("dead", 10**9, admin.info("server")["run_id"]))
        with working(broker):
            wait_until(lambda: [line for line in lines(caplog) if "once their locks have ended" in line])
        broker.close()
    assert not lines(caplog, "WARNING", "ERROR", "CRITICAL")
