from __future__ import annotations

import itertools
import os
import signal
import statistics

import pytest

from dramatiq_echomq.protocol.scripts import load

from ..support.dramatiq_processes import Workers, is_alive
from ..support.proxy import LossyProxy
from ..support.queue_data import put, state
from ..support.servers import KEEPS_DATA, Server, wait_until

pytestmark = pytest.mark.at_once


@pytest.mark.parametrize("processes", [1, 6])
def test_one_worker_or_six_check_a_queue_once_per_interval(processes):
    with Server() as server, server.client() as client:
        interval = 0.3
        with Workers(server.url, "--queues", "q", processes=processes, interval=300) as workers:
            client.delete("signals")
            wait_until(lambda: len(workers.signals("check")) > 8)
            times = [at for _, at, _ in workers.signals("check")]

        gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
        assert 0.9 * interval < statistics.median(gaps), gaps
        assert min(gaps) < 1.9 * interval, gaps  # and not once in two intervals


def test_only_the_queues_of_the_command_line_are_checked():
    with Server() as server, Workers(server.url, "--queues", "other") as workers:
        wait_until(lambda: len(workers.signals("check")) > 3)
        assert {queue for _, _, queue in workers.signals("check")} == {"other"}


def test_workers_recover_jobs_beside_their_own_messages():
    with Server() as server, server.client() as client:
        put(client, active=["a"], jobs={"a": {}})
        with Workers(server.url, processes=2) as workers:
            wait_until(lambda: workers.signals("recovered"))
            assert state(client)["wait"] == ["a"]
            assert not [line for line in workers.log().splitlines() if "ERROR" in line or "CRITICAL" in line]


def test_the_workers_of_dramatiq_gevent_recover_jobs():
    with Server() as server, server.client() as client:
        pytest.importorskip("gevent")
        put(client, active=["a"], jobs={"a": {}})
        with Workers(server.url, gevent=True) as workers:
            wait_until(lambda: [signal[2:] for signal in workers.signals("recovered")] == [["q", "a"]])
            assert workers.terminate() == 0


def test_others_go_on_when_the_worker_that_checked_is_killed():
    with Server() as server, server.client() as client, Workers(server.url) as first:
        wait_until(lambda: first.signals("check"))
        (killed,) = first.pids()
        with Workers(server.url) as others:
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda: first.master.poll() is not None)
            put(client, active=["a"], jobs={"a": {}})
            wait_until(lambda: others.signals("recovered"))
            assert {pid for pid, *_ in others.signals("recovered")} <= others.pids()


def test_a_redis_that_is_killed_and_comes_back_ends_no_worker():
    with (
        Server(*KEEPS_DATA) as server,
        server.client() as direct,
        Workers(server.url, processes=2) as workers,
    ):
        put(direct, active=["a"], jobs={"a": {}}, locks=["a"])
        wait_until(lambda: workers.signals("check"))
        pids = workers.pids()
        server.kill()
        wait_until(lambda: workers.log().count("of all queues are not recovered for now") == 2)
        server.start()
        direct.delete("emq:q:a:lock")
        wait_until(lambda: workers.signals("recovered"))

        assert state(direct)["wait"] == ["a"]
        wait_until(lambda: workers.log().count("of all queues are recovered again") == 2)
        assert workers.log().count("of all queues are not recovered for now") == 2
        assert workers.pids() == pids
        assert all(is_alive(pid) for pid in pids)


def test_scripts_that_redis_has_lost_are_sent_again():
    with Server() as server, server.client() as client, Workers(server.url) as workers:
        wait_until(lambda: workers.signals("check"))
        put(client, active=["a"], jobs={"a": {}})
        client.script_flush()
        wait_until(lambda: workers.signals("recovered"))
        assert "not recovered for now" not in workers.log()


def test_a_reply_that_is_lost_on_its_way_loses_no_signal_and_counts_once():
    with Server() as server, server.client() as direct, LossyProxy(server.port) as proxy:
        put(direct, active=["a"], jobs={"a": {}}, stalled={"a"})
        direct.script_load(load("moveStalledJobsToWait-8.lua").text)
        proxy.lose(b"emq:q:stalled-check")
        checker_url = f"redis://127.0.0.1:{proxy.port}/0"
        with Workers(server.url, "--queues", "q", checker_url=checker_url) as workers:
            wait_until(lambda: len(workers.signals("check")) > 2)
            assert proxy.lost == [b"emq:q:stalled-check"]
            assert [signal[2:] for signal in workers.signals("recovered")] == [["q", "a"]]
            assert "not recovered for now" not in workers.log()
        assert state(direct)["wait"] == ["a"]
        assert state(direct)["a"]["stc"] == "1"


def test_a_sigterm_to_the_master_ends_everything_in_time():
    with Server() as server, Workers(server.url, processes=3, interval=60_000) as workers:
        pids = workers.pids()
        assert all(is_alive(pid) for pid in pids)
        assert workers.terminate() == 0
    assert not [pid for pid in pids if is_alive(pid)]
