"""Workers that the operating system stops for a while."""

from __future__ import annotations

import os
import signal

import pytest

from dramatiq_echomq import EchoMQBroker

from .fleet import Fleet
from .jobs import id_of, message
from .servers import Server, wait_until

LOCK = 600


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def direct(server):
    with server.client(decode_responses=True) as direct:
        yield direct


def noted(client, name: str) -> list[int]:
    return [int(pid) for pid in client.lrange(name, 0, -1)]


def completions(direct) -> list[str]:
    return [fields["returnvalue"] for _, fields in direct.xrange("emq:q:events") if fields["event"] == "completed"]


@pytest.mark.parametrize("actor", ["hold", "stubborn"])
def test_a_job_of_a_worker_that_is_frozen_for_long_is_run_by_another_and_the_first_is_interrupted(
    server, direct, client, actor
):
    job_id = id_of(EchoMQBroker(url=server.url).enqueue(message(actor=actor)))
    with Fleet(server.url, client, size=2, threads=2, lock_duration=LOCK, stalled_interval=300) as fleet:
        (frozen,) = wait_until(lambda: noted(client, "began"))
        os.kill(frozen, signal.SIGSTOP)
        wait_until(lambda: len(noted(client, "began")) == 2)
        token = direct.get(f"emq:q:{job_id}:lock")
        os.kill(frozen, signal.SIGCONT)
        wait_until(lambda: noted(client, "lost") == [frozen])
        if actor == "stubborn":
            wait_until(lambda: noted(client, "ran") == [frozen])
        wait_until(lambda: "Lost the lock of job" in fleet.log())

        assert direct.lrange("emq:q:active", 0, -1) == [job_id]
        assert direct.get(f"emq:q:{job_id}:lock") == token
        assert not direct.hexists(f"emq:q:{job_id}", "finishedOn")
        client.set("released", 1)
        wait_until(lambda: direct.zscore("emq:q:completed", job_id))
        assert len(fleet.pids()) == 2
        assert fleet.terminate() == [0, 0]

        other = noted(client, "began")[1]
        assert other != frozen
        assert noted(client, "ran")[-1] == other
        assert noted(client, "lost") == [frozen]
        assert completions(direct) == ['"held"']
        assert direct.hmget(f"emq:q:{job_id}", "stc", "ats") == ["1", "2"]


def test_a_worker_that_is_frozen_for_less_than_the_grace_pass_goes_on(server, direct, client):
    job_id = id_of(EchoMQBroker(url=server.url).enqueue(message(actor="hold")))
    with Fleet(server.url, client, size=2, threads=2, lock_duration=LOCK, stalled_interval=1200) as fleet:
        (frozen,) = wait_until(lambda: noted(client, "began"))
        os.kill(frozen, signal.SIGSTOP)
        wait_until(lambda: direct.sismember("emq:q:stalled", job_id))
        os.kill(frozen, signal.SIGCONT)
        wait_until(lambda: direct.exists(f"emq:q:{job_id}:lock"))
        assert not direct.exists("emq:q:stalled")
        checked = direct.pttl("emq:q:stalled-check")
        wait_until(lambda: direct.pttl("emq:q:stalled-check") > checked)  # the next check has been

        client.set("released", 1)
        wait_until(lambda: direct.zscore("emq:q:completed", job_id))
        assert noted(client, "began") == noted(client, "ran") == [frozen]
        assert noted(client, "lost") == []
        assert direct.hmget(f"emq:q:{job_id}", "stc", "ats") == [None, "1"]
        assert "Lost the lock" not in fleet.log()
