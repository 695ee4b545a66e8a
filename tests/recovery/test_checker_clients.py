"""Every kind of client that the checker takes, each with a real server of its kind."""

from __future__ import annotations

import subprocess

import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.sentinel import Sentinel

from dramatiq_echomq import SettingError, StalledCheck, StalledChecker

from ..support.cluster import cluster_of_one
from ..support.queue_data import BACK, as_data, came_back, put, state
from ..support.servers import Server, server_binary, wait_until

STRANGE = b"\xff:1"


def recover(plain_client, checker, *, prefix="emq"):
    """Put a queue, run two checks of it through a checker, and look at everything they say."""
    put(plain_client, prefix=prefix, active=[STRANGE, "a"], jobs={"a": {"pb": "wörker"}, STRANGE: {}})

    assert checker.job_stalled("q", STRANGE)
    assert checker.sweep("q") == StalledCheck("q", marked=2)
    assert checker.sweep("q").skipped
    assert [(job.job_id, job.worker) for job in checker.inspect("q")] == [("a", "wörker"), ("\udcff:1", "")]
    assert checker.check("q") == StalledCheck("q", recovered=2, recovered_ids=("a", "\udcff:1"))

    after = state(plain_client, prefix=prefix)
    del after["stalled-check"]
    assert after == as_data(
        wait=[STRANGE, "a"],
        jobs={"a": {"pb": "wörker", **BACK}, STRANGE: BACK},
        marker={"0": 0},
        events=[*came_back("a"), *came_back(STRANGE)],
    )


@pytest.mark.parametrize("decode_responses", [True, False], ids=["decoded", "bytes"])
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_may_decode_or_not_and_speak_any_protocol(client, redis_url, protocol, decode_responses):
    own = redis.Redis.from_url(redis_url, protocol=protocol, decode_responses=decode_responses)

    recover(client, StalledChecker(own))

    own.close()


def test_a_client_may_have_one_connection(client, redis_url):
    with redis.Redis.from_url(redis_url, single_connection_client=True) as own:
        recover(client, StalledChecker(own))


def test_the_script_is_loaded_again_when_the_server_lost_it():
    with Server() as server, server.client() as client:
        checker = StalledChecker(client)
        checker.check("q")
        client.script_flush()

        recover(client, checker)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one server that has all the slots but that of ``{far}``."""
    with cluster_of_one("--cluster-require-full-coverage", "no", without=["far"]) as server:
        yield server


def cluster_client(server, **parameters) -> RedisCluster:
    nodes = [ClusterNode("127.0.0.1", server.port)]
    return RedisCluster(startup_nodes=nodes, require_full_coverage=False, **parameters)


@pytest.mark.parametrize("decode_responses", [True, False], ids=["decoded", "bytes"])
def test_a_cluster_is_checked_under_a_prefix_with_a_hash_tag(cluster, decode_responses):
    plain_client = cluster.client()
    plain_client.flushall()
    own = cluster_client(cluster, decode_responses=decode_responses)

    recover(plain_client, StalledChecker(own, prefix="{emq}"), prefix="{emq}")

    own.close()
    plain_client.close()


def test_a_parent_on_another_node_is_not_told_and_stops_nothing(cluster):
    plain_client = cluster.client()
    plain_client.flushall()
    child = {"stc": "1", "parentKey": "{far}:flows:p", "opts": '{"fpof": true}'}
    jobs = {"before": {}, "child": child, "after": {}}
    put(plain_client, prefix="{emq}", active=["after", "child", "before"], jobs=jobs, stalled=set(jobs))
    own = cluster_client(cluster)

    check = StalledChecker(own, prefix="{emq}").check("q")

    assert (check.recovered_ids, check.failed_ids) == (("before", "after"), ("child",))
    ((job_id, oddity),) = check.oddities
    assert job_id == "child"
    assert oddity.startswith("its parent was not told: ")
    after = state(plain_client, prefix="{emq}")
    assert (after["wait"], list(after["failed"])) == (["after", "before"], ["child"])
    own.close()
    plain_client.close()


@pytest.mark.parametrize("prefix", ["emq", "{emq", "emq}", "{}emq", "e}m{q"])
def test_a_cluster_needs_a_prefix_with_a_hash_tag(prefix):
    own = RedisCluster.__new__(RedisCluster)  # the prefix is refused before anything is asked

    with pytest.raises(SettingError, match="must be one with a hash tag"):
        StalledChecker(own, prefix=prefix)


class SentinelServer(Server):
    """A sentinel that watches one server. It takes its configuration from a file only.

    Parameters:
      port(int): The port of that server on the loopback interface.
    """

    def __init__(self, port: int) -> None:
        super().__init__()
        self.watched = port

    def start(self) -> None:
        configuration = self.directory / "sentinel.conf"
        watch = f"sentinel monitor jobs 127.0.0.1 {self.watched} 1"
        configuration.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n{watch}\n")
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([server_binary(), configuration, "--sentinel"], stdout=log, stderr=log)
        wait_until(self._answers, message=f"the sentinel did not answer: {self.log()}")


@pytest.mark.parametrize("decode_responses", [True, False], ids=["decoded", "bytes"])
def test_a_client_may_come_from_a_sentinel(client, decode_responses):
    port = client.connection_pool.connection_kwargs["port"]
    with SentinelServer(port) as server:
        sentinel = Sentinel([("127.0.0.1", server.port)], socket_timeout=5)
        own = sentinel.master_for("jobs", decode_responses=decode_responses)

        recover(client, StalledChecker(own))

        own.close()
