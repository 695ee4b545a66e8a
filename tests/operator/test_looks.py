"""What the inspector says of a queue and its jobs. A look writes nothing."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator

import pytest
import redis

from dramatiq_echomq import JobNotFound, QueueInspector, QueueNotFound, QueueRefused, SettingError, StalledChecker
from dramatiq_echomq.inspection.records import JobCounts, RateLimit, WorkerInfo

from ..support.brokers import working
from ..support.operator_data import MESSAGE_ID, message_data, put_busy_queue
from ..support.queue_data import NOW, dump, put
from ..support.servers import wait_until

MISSING = "imagse"


@pytest.fixture
def busy(client) -> Iterator[QueueInspector]:
    """An inspector of a busy queue, which its looks leave as it was."""
    put_busy_queue(client)
    before = dump(client)
    yield QueueInspector(client)
    assert dump(client) == before


def now(client) -> int:
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


def ids(jobs) -> list[str]:
    return [job.job_id for job in jobs]


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


@pytest.mark.parametrize("holder", ["", "somebody", "4f2e.17/3"])
def test_a_throttle_of_anybody_is_no_known_check(client, holder):
    put(client, wait=["a"], jobs={"a": {}}, stalled_check=holder)

    assert QueueInspector(client).queue("q").last_check is None


def test_a_rate_limit_that_is_not_reached_lets_jobs_start(client):
    put(client, meta={"max": "10", "duration": "1000"}, limiter="9")

    assert QueueInspector(client).queue("q").rate_limit == RateLimit(10, 1000, 0)


def test_a_delayed_job_waits_only_since_it_was_due(client):
    put(client, wait=["a"], jobs={"a": {"timestamp": str(NOW), "opts": '{"delay": 1000}', "delay": "0"}})

    info = QueueInspector(client).queue("q")

    assert info.oldest_waiting.waiting_since == NOW + 1000


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
        assert [queue.workers for queue in inspector.queues()] == [inspector.workers("q")]
    wait_until(lambda: not inspector.workers("q"))


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
    ("state", "expected"),
    [
        ("wait", ["next", "waits"]),
        ("active", ["runs"]),
        ("delayed", ["later"]),
        ("prioritized", ["urgent"]),
        ("waiting-children", ["parent"]),
        ("completed", ["done"]),
        ("failed", ["crashed", "old"]),
        ("paused", []),
    ],
)
def test_jobs_are_listed_by_state(busy, state, expected):
    page = busy.jobs("q", state)

    assert ids(page.jobs) == expected
    assert {job.state for job in page.jobs} <= {state}
    assert (page.total, page.next_offset) == (len(expected), None)


def test_a_job_says_all_that_it_knows(busy):
    runs = busy.jobs("q", "active").jobs[0]
    assert (runs.worker, runs.starts, runs.attempts, runs.stalls) == ("host:7", 2, 1, 1)
    assert runs.started_at == NOW - 9_000
    assert 0 < runs.lock_ttl <= 60_000

    foreign, waits = busy.jobs("q", "wait").jobs
    assert (waits.message_id, waits.args, waits.kwargs) == (MESSAGE_ID, ("a.png",), {"x": 2})
    assert (foreign.message_id, foreign.args, foreign.kwargs) == ("next", ({"path": 1},), {})

    old = busy.job("q", "old").job
    assert (old.reason, old.stacktrace, old.finished_at) == ("ValueError: x", ("line 1",), NOW - 4)
    assert busy.job("q", "later").job.due_at == NOW + 60_000
    assert busy.job("q", "done").job.return_value == "3"


def test_pages_follow_each_other(client):
    put(client, wait=[str(number) for number in range(25)], jobs={str(number): {} for number in range(25)})
    inspector, offset, seen = QueueInspector(client), 0, []
    while offset is not None:
        page = inspector.jobs("q", "wait", offset=offset, limit=10)
        seen += ids(page.jobs)
        offset = page.next_offset

    assert seen == [str(number) for number in reversed(range(25))]


def test_a_text_is_looked_for_in_names_data_and_reasons(busy):
    assert ids(busy.jobs("q", "failed", text="valueERROR").jobs) == ["old"]
    assert ids(busy.search("q", "wait", "A.PNG")) == ["waits"]
    assert ids(busy.search("q", "wait", "work")) == ["next", "waits"]
    assert ids(busy.search("q", "failed", "%a")) == []


def test_a_search_goes_through_any_number_of_jobs(client):
    numbers = range(2_500)
    put(client, failed={str(number): number + 1 for number in numbers}, jobs={str(number): {} for number in numbers})

    assert ids(QueueInspector(client).search("q", "failed")) == [str(number) for number in reversed(numbers)]


def test_a_job_is_found_by_its_id_and_by_that_of_its_message(busy):
    assert ids(busy.find("q", "waits")) == ids(busy.find("q", MESSAGE_ID)) == ["waits"]


def test_a_message_has_a_job_for_each_time_it_was_enqueued(client):
    jobs = {name: {"data": message_data(), "timestamp": str(at)} for at, name in enumerate(("first", "second"), 1)}
    jobs["other"] = {"data": message_data("another", args=(MESSAGE_ID,)), "timestamp": "9"}
    put(client, jobs=jobs, completed={"first": 1}, wait=["second", "other"])

    assert ids(QueueInspector(client).find("q", MESSAGE_ID)) == ["second", "first"]


def test_a_message_with_large_arguments_is_found(client):
    large = message_data(args=("x" * 100_000,))
    put(client, jobs={"a": {"data": large}, "b": {"data": large.replace(MESSAGE_ID, "b")}}, wait=["a", "b"])

    assert ids(QueueInspector(client).find("q", MESSAGE_ID)) == ["a"]
    listed = QueueInspector(client).jobs("q", "wait").jobs[0]
    assert (listed.data, listed.args, listed.data_size) == (None, None, len(large.replace(MESSAGE_ID, "b")))
    assert QueueInspector(client).job("q", "a").job.args == ("x" * 100_000,)


def test_one_job_has_its_log_its_marks_and_its_places(client):
    put(client, jobs={"a": {}}, active=["a"], wait=["a"], stalled={"a"}, **{"a:logs": ["one", "two"]})
    client.sadd("emq:q:a:dependencies", "emq:x:1", "emq:x:2")

    details = QueueInspector(client).job("q", "a")

    assert (details.states, details.marked, details.log) == (("active", "wait"), True, ("one", "two"))
    assert details.children_left == 2


def test_odd_jobs_break_nothing(client):
    fields = {"opts": "[", "stc": "many", "timestamp": "soon", "priority": "1e999", "stacktrace": "plain", "data": "{"}
    put(client, jobs={"odd": fields}, wait=["odd", "ghost", "text", b"\xff"], text="x")
    client.hset("emq:q:lost", "data", "{}")

    jobs = {job.job_id: job for job in QueueInspector(client).jobs("q", "wait").jobs}

    assert (jobs["odd"].opts, jobs["odd"].stalls, jobs["odd"].added_at, jobs["odd"].args) == ({}, 0, None, None)
    assert jobs["odd"].stacktrace == ("plain",)
    assert jobs["ghost"].state == jobs["text"].state == jobs["\udcff"].state == "missing"
    assert QueueInspector(client).job("q", "lost").job.state == "nowhere"
    assert QueueInspector(client).job("q", "ghost").job.state == "missing"


@pytest.mark.parametrize("name", ["meta", "nothing", "active", ""])
def test_what_is_no_job_is_not_found(busy, name):
    with pytest.raises(JobNotFound, match="queue 'q' has no job"):
        busy.job("q", name)


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
