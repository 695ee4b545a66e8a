"""A stall that ends in failure is a Dramatiq failure."""

from __future__ import annotations

import json
import time

import dramatiq
import pytest
from dramatiq.results import ResultFailure, Results
from dramatiq.results.backends import RedisBackend, StubBackend

from dramatiq_echomq import EchoMQBroker, JobStalled, StalledCheckerMiddleware
from dramatiq_echomq.recovery.checker import StalledChecker

from ..support.brokers import lines, working
from ..support.job_data import id_of
from ..support.queue_data import put, state
from ..support.servers import wait_until

LIMIT = "job stalled more than allowable limit"


class Nacks(dramatiq.Middleware):
    """Notes what it is told of nacks."""

    def __init__(self) -> None:
        self.told: list[tuple] = []

    def before_nack(self, broker, message):
        self.told.append(("before", message, message.failed, message._exception))

    def after_nack(self, broker, message):
        self.told.append(("after", message, message.failed, message._exception))


@pytest.fixture
def nacks(full_broker):
    nacks = Nacks()
    full_broker.add_middleware(nacks)
    return nacks


@pytest.fixture
def told(full_broker):
    """The jobs of the queue `told`: what `on_failure` was sent."""

    @dramatiq.actor(broker=full_broker, queue_name="told", actor_name="told")
    def actor(message, exception):
        pass

    def told():
        jobs = (value for value in state(full_broker.client, "told").values() if isinstance(value, dict))
        return [json.loads(job["data"])["args"] for job in jobs if "data" in job]

    return told


def lose_worker(client, job_id: str, stalls: int = 1) -> None:
    """A job was taken by a worker that died, and another time before that."""
    key = f"emq:default:{job_id}"
    client.lrem("emq:default:wait", 1, job_id)
    client.hset(key, mapping={"ats": 2, "stc": stalls, "pb": "host:1"})
    put(client, "default", active=[job_id], stalled={job_id})


def check(client, broker, **settings) -> None:
    """A check, and what a middleware does with it."""
    found = StalledChecker(client, **settings).check("default")
    broker.jobs_stalled_out("default", found.failed_jobs)


def test_nack_signals_are_sent_with_what_happened(client, full_broker, nacks):
    @dramatiq.actor(broker=full_broker)
    def work(x):
        pass

    sent = work.send(5)
    lose_worker(client, id_of(sent))

    check(client, full_broker)

    assert [(when, failed) for when, _, failed, _ in nacks.told] == [("before", True), ("after", True)]
    for _, message, _, error in nacks.told:
        assert (message.message_id, message.args, message.queue_name) == (sent.message_id, (5,), "default")
        assert isinstance(error, JobStalled)
        assert (error.reason, error.stalls, error.worker, str(error)) == (LIMIT, 2, "host:1", LIMIT)


def test_nobody_is_told_of_a_stall_that_is_survived(client, full_broker, nacks, told):
    @dramatiq.actor(broker=full_broker, on_failure="told")
    def work():
        pass

    lose_worker(client, id_of(work.send()), stalls=0)

    check(client, full_broker)

    assert (nacks.told, told()) == ([], [])


@pytest.mark.parametrize("kind", ["stub", "redis"])
def test_a_result_raises_at_once(client, full_broker, kind):
    backend = StubBackend() if kind == "stub" else RedisBackend(client=client)
    full_broker.add_middleware(Results(backend=backend))

    @dramatiq.actor(broker=full_broker, store_results=True)
    def work():
        pass

    sent = work.send()
    lose_worker(client, id_of(sent))

    check(client, full_broker)

    started = time.monotonic()
    with pytest.raises(ResultFailure, match=f"JobStalled: {LIMIT}"):
        sent.get_result(backend=backend, block=True, timeout=10_000)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("of_actor", "of_message"), [({"on_failure": "told"}, {}), ({}, {"on_failure": "told"})], ids=["actor", "message"]
)
def test_on_failure_is_enqueued_as_for_an_exception(client, full_broker, told, of_actor, of_message):
    @dramatiq.actor(broker=full_broker, **of_actor)
    def work(x):
        pass

    sent = work.send_with_options(args=(5,), **of_message)
    lose_worker(client, id_of(sent))

    check(client, full_broker)

    [(message, exception)] = told()
    assert (message["message_id"], message["args"], message["actor_name"]) == (sent.message_id, [5], "work")
    assert exception == {"type": "JobStalled", "message": LIMIT}


def test_on_failure_needs_dramatiqs_middleware_as_ever(client, full_broker, told):
    broker = EchoMQBroker(client=client, middleware=[])
    for actor in full_broker.actors.values():
        broker.declare_actor(actor)

    @dramatiq.actor(broker=full_broker, on_failure="told")
    def work():
        pass

    broker.declare_actor(work)
    lose_worker(client, id_of(work.send()))

    check(client, broker)

    assert told() == []


def test_a_job_that_its_own_retention_removed_is_told_of_as_well(client, full_broker, nacks):
    @dramatiq.actor(broker=full_broker)
    def work():
        pass

    sent = work.send()
    lose_worker(client, id_of(sent))
    client.hset(f"emq:default:{id_of(sent)}", "opts", '{"removeOnFail": true}')

    check(client, full_broker)

    assert id_of(sent) not in state(client, "default")
    assert [when for when, *_ in nacks.told] == ["before", "after"]


@pytest.mark.parametrize(
    ("data", "warnings"), [('{"args": [1]}', 0), ("[1]", 0), ("{", 1), ("", 1)], ids=["foreign", "JSON", "bad", "empty"]
)
def test_jobs_that_are_no_messages_are_skipped_and_undecodable_ones_with_a_warning(
    client, full_broker, nacks, data, warnings, caplog
):
    @dramatiq.actor(broker=full_broker)
    def work():
        pass

    put(client, "default", jobs={"odd": {"data": data}})
    lose_worker(client, "odd")
    sent = work.send()
    lose_worker(client, id_of(sent))

    check(client, full_broker)

    assert {message.message_id for _, message, *_ in nacks.told} == {sent.message_id}
    warned = [record for record in caplog.records if record.levelname == "WARNING" and "'odd'" in record.getMessage()]
    assert len(warned) == warnings


def test_what_goes_wrong_for_one_job_is_logged_and_the_next_is_told_of(client, full_broker, nacks, told, caplog):
    @dramatiq.actor(broker=full_broker)
    def work():
        pass

    for on_failure in ("nobody", "told"):
        lose_worker(client, id_of(work.send_with_options(on_failure=on_failure)))

    check(client, full_broker)

    assert (len(nacks.told), len(told())) == (4, 1)
    assert "could not be told" in caplog.text


def test_an_actor_that_is_declared_elsewhere_is_told_of(client, full_broker, nacks):
    sent = full_broker.enqueue(dramatiq.Message("default", "elsewhere", (), {}, {}))
    lose_worker(client, id_of(sent))

    check(client, full_broker)

    assert [when for when, *_ in nacks.told] == ["before", "after"]


def test_a_deferred_failure_of_a_message_is_told_of_when_it_is_taken(client, full_broker, nacks, told):
    """BullMQ's sweepers leave a job that stalled too often in wait, to be failed at its next pickup."""

    @dramatiq.actor(broker=full_broker, on_failure="told")
    def work():
        seen.append(1)

    seen: list[int] = []
    sent = work.send()
    client.hset(f"emq:default:{id_of(sent)}", mapping={"defa": LIMIT, "stc": 2, "pb": "host:1"})

    with working(full_broker, queues={"default"}):
        full_broker.join("default", timeout=10_000)

    assert seen == []
    assert [when for when, *_ in nacks.told] == ["before", "after"]
    error = nacks.told[0][3]
    assert (error.reason, error.stalls, error.worker) == (LIMIT, 2, "host:1")
    assert [exception for _, exception in told()] == [{"type": "JobStalled", "message": LIMIT}]
    job = state(client, "default")[id_of(sent)]
    assert (job["failedReason"], "defa" in job, "stacktrace" in job) == (LIMIT, False, False)
    assert list(state(client, "default")["failed"]) == [id_of(sent)]


@pytest.mark.parametrize("target", ["nobody", {"odd": 1}], ids=["unknown", "odd"])
def test_a_deferred_failure_that_cannot_be_told_disturbs_no_consumer(client, full_broker, caplog, target):
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.enqueue(dramatiq.Message("default", "work", (), {}, {"on_failure": target}))
    client.hset(f"emq:default:{id_of(sent)}", mapping={"defa": LIMIT})

    with working(full_broker, queues={"default"}):
        full_broker.join("default", timeout=10_000)

    assert list(state(client, "default")["failed"]) == [id_of(sent)]
    assert f"The failure of stalled job '{id_of(sent)}' could not be told" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"]


def test_a_worker_with_the_checker_tells_of_it_all(client, full_broker, nacks, told, caplog):
    backend = StubBackend()
    full_broker.add_middleware(Results(backend=backend))
    full_broker.add_middleware(StalledCheckerMiddleware(stalled_interval=50, max_stalled_count=0))

    @dramatiq.actor(broker=full_broker, store_results=True, on_failure="told")
    def work():
        pass

    sent = work.send()
    lose_worker(client, id_of(sent), stalls=0)

    with working(full_broker, queues={"default"}):
        with pytest.raises(ResultFailure, match="JobStalled"):
            sent.get_result(backend=backend, block=True, timeout=10_000)
        wait_until(told)

    assert [when for when, *_ in nacks.told] == ["before", "after"]
    assert lines(caplog, "WARNING", "CRITICAL") == []
