"""What the inspector says of a queue and its jobs. A look writes nothing."""

from __future__ import annotations

import base64
import os
import socket

import pytest
import redis

from dramatiq_echomq import QueueInspector, QueueNotFound, QueueRefused, SettingError, StalledChecker
from dramatiq_echomq.inspection.records import JobCounts, RateLimit, WorkerInfo
from dramatiq_echomq.inspection.workers import Connections

from ..support.brokers import working
from ..support.operator_data import MESSAGE_ID, put_busy_queue
from ..support.queue_data import META, NOW, dump, put
from ..support.servers import wait_until

MISSING = "imagse"


def now(client) -> int:
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


def test_a_queue_is_described(busy, client):
    info = busy.queue("q")

    assert (info.name, info.prefix, info.version, info.paused) == ("q", "emq", "echomq:1", False)
    assert abs(info.at - now(client)) < 60_000
    assert info.counts == JobCounts(
        wait=2, paused=0, active=1, delayed=1, prioritized=1, waiting_children=1, completed=1, failed=2
    )
    assert info.counts.waiting == 3
    assert (info.oldest_waiting.job_id, info.oldest_waiting.state) == ("urgent", "prioritized")
    assert info.waiting_for == info.at - (NOW - 7_000)
    assert info.oldest_active.job_id == "runs"
    assert info.active_for == info.at - (NOW - 9_000)
    assert info.next_due == NOW + 60_000
    assert (info.concurrency, info.rate_limit, info.last_check, info.next_check) == (None, None, None, None)
    assert info.workers == ()


def test_limits_a_pause_and_the_last_check_are_told(client):
    put(client, meta={"paused": "1", "concurrency": "3", "max": "10", "duration": "1000"}, limiter="10")
    put(client, stalled={"a", "b"}, active=["a", "b"], paused=["p"], jobs={"p": {}, "a": {}, "b": {}})
    client.pexpire("emq:q:limiter", 500_000)
    client.set("emq:q:stalled-check", f"4f2e.17/3@{NOW}", px=300_000)

    info = QueueInspector(client).queue("q")

    assert (info.paused, info.concurrency, info.marked, info.last_check) == (True, 3, 2, NOW)
    assert QueueInspector(client).is_paused("q")
    assert info.rate_limit.max == 10
    assert 0 < info.rate_limit.wait <= 500_000
    assert 0 < info.next_check <= 300_000
    assert info.oldest_waiting.job_id == "p"


def test_a_check_says_when_it_was(client, clock):
    put(client, active=["a"], jobs={"a": {}})
    StalledChecker(client).sweep("q")

    assert QueueInspector(client).queue("q").last_check == NOW


def test_a_check_after_a_crash_or_by_hand_is_the_last_one_too(client, clock):
    """Such a check takes no throttle: others come when they would have come anyway."""
    put(client, active=["a"], jobs={"a": {}}, meta=META)
    client.set("emq:q:stalled-check", f"4f2e.17/3@{NOW - 20_000}", px=10_000)
    StalledChecker(client).check("q", may_be_held=True)

    info = QueueInspector(client).queue("q")

    assert (info.last_check, info.next_check is None) == (NOW, False)
    client.delete("emq:q:stalled-check")
    assert QueueInspector(client).queue("q").last_check == NOW


def test_a_check_of_a_queue_that_is_not_there_leaves_nothing(client):
    StalledChecker(client).check("q")

    assert client.keys() == []


@pytest.mark.parametrize("holder", ["", "somebody", "4f2e.17/3"])
def test_a_throttle_of_anybody_is_no_known_check(client, holder):
    put(client, wait=["a"], jobs={"a": {}}, stalled_check=holder)

    assert QueueInspector(client).queue("q").last_check is None


def test_a_rate_limit_that_is_not_reached_lets_jobs_start(client):
    put(client, meta={"max": "10", "duration": "1000"}, limiter="9")

    assert QueueInspector(client).queue("q").rate_limit == RateLimit(10, 1000, 0)


def test_a_delayed_job_waits_only_since_it_was_due(client):
    put(client, wait=["a"], jobs={"a": {"timestamp": str(NOW - 9_000), "opts": '{"delay": 1000}', "delay": "0"}})

    info = QueueInspector(client).queue("q")

    assert info.oldest_waiting.waiting_since == NOW - 8_000


def test_workers_that_are_connected_are_named(client, redis_url):
    put(client, wait=["a"], jobs={"a": {}})
    encoded = base64.b64encode(b"q").decode()
    other = base64.b64encode(b"other").decode()
    names = [f"emq:{encoded}", f"emq:{encoded}:w:host:12", f"emq:{encoded}:qe", f"emq:{other}", "emq:x", "emq:///"]
    workers = [redis.Redis.from_url(redis_url, client_name=name) for name in names]
    for worker in workers:
        worker.ping()

    found = QueueInspector(client).workers("q")

    assert {worker.name for worker in found} == {"", "host:12"}
    assert all(isinstance(worker, WorkerInfo) and ":" in worker.address for worker in found)
    for worker in workers:
        worker.close()


def test_workers_of_a_broker_are_named_as_long_as_they_are_connected(client, broker):
    put(client, meta={"version": "echomq:1"}, **{"echomq:workers": {"gone 999999999 run host:1": 1, "odd": 1}})
    broker.declare_queue("q")
    inspector = QueueInspector(client)
    assert inspector.workers("q") == ()
    with working(broker):
        [worker] = wait_until(lambda: inspector.workers("q"))
        assert worker.name == f"{socket.gethostname()}:{os.getpid()}"
        wait_until(lambda: [queue.workers for queue in inspector.queues()] == [inspector.workers("q")])
    wait_until(lambda: not inspector.workers("q"))


def test_workers_of_another_database_are_none_of_a_queue(client, redis_url):
    """There may be a queue of the same name: staging beside production, say."""
    put(client, wait=["a"], jobs={"a": {}})
    name = f"emq:{base64.b64encode(b'q').decode()}:w:host:12"
    with redis.Redis.from_url(redis_url, client_name=name) as worker:
        parameters = worker.connection_pool.connection_kwargs
        parameters["db"] = int(parameters.get("db") or 0) + 1
        worker.ping()

        assert QueueInspector(client).workers("q") == ()
        assert [each.name for each in Connections.read(worker, "emq").workers_of("q", [])] == ["host:12"]


def test_workers_are_unknown_where_redis_does_not_say(client, redis_url):
    put(client, wait=["a"], jobs={"a": {}})
    client.acl_setuser("blind", enabled=True, passwords=["+x"], keys=["*"], categories=["+@all"], commands=["-client"])
    blind = redis.Redis.from_url(redis_url.replace("://", "://blind:x@"))

    assert QueueInspector(blind).queue("q").workers is None

    blind.close()
    client.acl_deluser("blind")


def test_the_queues_of_a_prefix_are_found(client):
    for queue in ("images", "mails", "a:b"):
        put(client, queue, meta={"version": "echomq:1"})
    put(client, "mails", jobs={"repeat:meta": {}})
    put(client, "theirs", prefix="bull", meta={"version": "x"})
    inspector = QueueInspector(client)

    assert inspector.queue_names() == ["a:b", "images", "mails"]
    assert [info.name for info in inspector.queues()] == ["a:b", "images", "mails"]
    assert QueueInspector(client, prefix="bull").queue_names() == ["theirs"]


def test_a_prefix_is_no_pattern(client):
    put(client, prefix="a*[b]", meta={"version": "x"})
    put(client, prefix="aab", meta={"version": "x"})

    assert QueueInspector(client, prefix="a*[b]").queue_names() == ["q"]


@pytest.mark.parametrize(
    "look",
    [
        lambda inspector: inspector.queue(MISSING),
        lambda inspector: inspector.queues(["images", MISSING]),
        lambda inspector: inspector.is_paused(MISSING),
        lambda inspector: inspector.workers(MISSING),
        lambda inspector: inspector.jobs(MISSING, "wait"),
        lambda inspector: inspector.search(MISSING, "wait"),
        lambda inspector: inspector.job(MISSING, "a"),
        lambda inspector: inspector.find(MISSING, "a"),
        lambda inspector: inspector.retry(MISSING, ["a"]),
        lambda inspector: inspector.remove(MISSING, ["a"]),
        lambda inspector: inspector.promote(MISSING, ["a"]),
        lambda inspector: inspector.failed_ids(MISSING),
        lambda inspector: inspector.pause(MISSING),
        lambda inspector: inspector.resume(MISSING),
    ],
)
def test_a_queue_that_does_not_exist_is_said_to_be_so_and_not_made(client, look):
    put(client, "images", meta={"version": "echomq:1"})
    before = dump(client)

    with pytest.raises(QueueNotFound, match="no queue 'imagse' under the prefix 'emq'; did you mean 'images'"):
        look(QueueInspector(client))

    assert dump(client) == before
    assert not QueueInspector(client).exists(MISSING)
    assert QueueInspector(client).exists("images")


def test_an_empty_database_says_so(client):
    with pytest.raises(QueueNotFound, match="there is none in this database; look at the URL and the prefix"):
        QueueInspector(client).queue("q")


def test_a_queue_of_another_protocol_is_refused(client):
    put(client, meta={"version": "echomq:2.0.0"}, wait=["a"])

    with pytest.raises(QueueRefused, match="EchoMQ 1"):
        QueueInspector(client).queue("q")


def test_an_unknown_state_is_an_error(busy):
    with pytest.raises(SettingError, match="must be one of delayed, "):
        busy.jobs("q", "waiting")


def test_a_client_that_decodes_will_do(client, redis_url):
    put_busy_queue(client)
    decoding = redis.Redis.from_url(redis_url, decode_responses=True)
    inspector = QueueInspector(decoding)

    assert inspector.queue_names() == ["q"]
    assert inspector.queue("q").counts.failed == 2
    assert inspector.find("q", MESSAGE_ID)[0].args == ("a.png",)
    decoding.close()
