"""Workers that the operating system stops for a while."""

from __future__ import annotations

import os
import signal

import pytest

from dramatiq_echomq import EchoMQBroker, StalledCheck, StalledChecker

from ..support.fleet import Fleet, two_servers
from ..support.job_data import id_of, message
from ..support.servers import wait_until

pytestmark = pytest.mark.at_once
LOCK = 4_000


def noted(notes, name: str) -> list[int]:
    return [int(pid) for pid in notes.lrange(name, 0, -1)]


def completions(direct) -> list[str]:
    return [fields["returnvalue"] for _, fields in direct.xrange("emq:q:events") if fields["event"] == "completed"]


@pytest.mark.parametrize("actor", ["hold", "stubborn"])
def test_a_job_of_a_worker_that_is_frozen_for_long_is_run_by_another_and_the_first_is_interrupted(actor):
    with two_servers(decode_responses=True) as (server, direct, notes):
        job_id = id_of(EchoMQBroker(url=server.url).enqueue(message(actor=actor)))
        with Fleet(server.url, notes, size=2, threads=2, lock_duration=LOCK, stalled_interval=300) as fleet:
            (frozen,) = wait_until(lambda: noted(notes, "started"))
            os.kill(frozen, signal.SIGSTOP)
            direct.pexpire(f"emq:q:{job_id}:lock", 1)
            wait_until(lambda: len(noted(notes, "started")) == 2, timeout=60)  # who is frozen may take the marker
            token = direct.get(f"emq:q:{job_id}:lock")
            os.kill(frozen, signal.SIGCONT)
            wait_until(lambda: noted(notes, "lost") == [frozen])
            if actor == "stubborn":
                wait_until(lambda: noted(notes, "ran") == [frozen])
            wait_until(lambda: "Lost the lock of job" in fleet.log())

            assert direct.lrange("emq:q:active", 0, -1) == [job_id]
            assert direct.get(f"emq:q:{job_id}:lock") == token
            assert not direct.hexists(f"emq:q:{job_id}", "finishedOn")
            notes.set("released", 1)
            wait_until(lambda: direct.zscore("emq:q:completed", job_id))
            assert len(fleet.pids()) == 2
            assert fleet.terminate() == [0, 0]

        other = noted(notes, "started")[1]
        assert other != frozen
        assert noted(notes, "ran")[-1] == other
        assert noted(notes, "lost") == [frozen]
        assert completions(direct) == ['"held"']
        assert direct.hmget(f"emq:q:{job_id}", "stc", "ats") == ["1", "2"]


def test_a_worker_that_is_frozen_for_less_than_the_grace_pass_goes_on():
    with two_servers(decode_responses=True) as (server, direct, notes):
        job_id = id_of(EchoMQBroker(url=server.url).enqueue(message(actor="hold")))
        with Fleet(server.url, notes, size=2, threads=2, lock_duration=LOCK, stalled_interval=600_000) as fleet:
            (frozen,) = wait_until(lambda: noted(notes, "started"))
            os.kill(frozen, signal.SIGSTOP)
            direct.pexpire(f"emq:q:{job_id}:lock", 1)
            wait_until(lambda: not direct.exists(f"emq:q:{job_id}:lock"))
            assert StalledChecker(direct).check("q").marked == 1
            os.kill(frozen, signal.SIGCONT)
            wait_until(lambda: direct.exists(f"emq:q:{job_id}:lock"))
            wait_until(lambda: StalledChecker(direct).check("q") == StalledCheck("q"))

            notes.set("released", 1)
            wait_until(lambda: direct.zscore("emq:q:completed", job_id))
            assert noted(notes, "started") == noted(notes, "ran") == [frozen]
            assert noted(notes, "lost") == []
            assert direct.hmget(f"emq:q:{job_id}", "stc", "ats") == [None, "1"]
            assert "Lost the lock" not in fleet.log()
