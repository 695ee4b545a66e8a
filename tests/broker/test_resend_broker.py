"""A script of the broker that is sent again because its reply was lost counts once."""

from __future__ import annotations

import pytest
import redis
from dramatiq.errors import ConnectionClosed
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.jobs import FetchedJob, Outcome
from dramatiq_echomq.broker.queue import Fetch, JobQueue
from dramatiq_echomq.broker.replies import FAILED_INSTEAD, FINISHED, NOT_OWNED, Finished
from dramatiq_echomq.protocol.keys import QueueKeys

from ..support.brokers import lines
from ..support.faults import Faults
from ..support.job_data import add, id_of, take
from ..support.proxy import LossyProxy, SendsTwice
from ..support.queue_data import put, state

pytestmark = pytest.mark.usefixtures("clock")

JOB = {"name": "work", "data": "[]"}
KEEPS_NONE = '{"keepCompleted": {"count": 0}, "keepFailed": {"count": 0}}'


def a_queue(client, finish_rules: str = "{}") -> JobQueue:
    return JobQueue(QueueKeys("q"), client, client, finish_rules)


def fetch(plain_client, count: int) -> list[FetchedJob]:
    """Jobs that were fetched, once."""
    return a_queue(plain_client).finish_and_fetch([], Fetch("call", count)).jobs


def held(plain_client, *job_ids: str) -> list[FetchedJob]:
    put(plain_client, wait=[*reversed(job_ids)], jobs=dict.fromkeys(job_ids, JOB))
    return fetch(plain_client, len(job_ids))


def finish(queue, job: FetchedJob, target: str, value: str, *, trace: str = "") -> Finished:
    return queue.finish_and_fetch([(job, Outcome(target, value, trace))]).finished[0]


def adds(queue, plain_client):
    return queue.add("new", name="work", data=b"{}", opts={})


def adds_delayed(queue, plain_client):
    return queue.add("new", name="work", data=b"{}", opts={"delay": 9}, due=1_800_000_000_000)


def adds_prioritized(queue, plain_client):
    return queue.add("new", name="work", data=b"{}", opts={}, priority=3)


def adds_one_that_was_taken_in_between(queue, plain_client):
    queue.add("new", name="work", data=b"{}", opts={})
    fetch(plain_client, 1)
    return queue.add("new", name="work", data=b"{}", opts={})


def completes(queue, plain_client):
    job, _ = held(plain_client, "a", "b")
    return finish(queue, job, "completed", "1")


def completes_and_removes(queue, plain_client):
    queue.rules = KEEPS_NONE
    finished = completes(queue, plain_client)
    assert finished.outcome == FINISHED
    return finished


def fails_and_removes(queue, plain_client):
    queue.rules = KEEPS_NONE
    finished = fails(queue, plain_client)
    assert finished.outcome == FINISHED
    return finished


def fails(queue, plain_client):
    job, _ = held(plain_client, "a", "b")
    return finish(queue, job, "failed", "broke", trace="[]")


def completes_a_child(queue, plain_client):
    put(plain_client, waiting_children={"p": 1}, jobs={"p": JOB}, **{"p:dependencies": {"emq:q:a", "emq:q:x"}})
    put(plain_client, wait=["a"], jobs={"a": {**JOB, "parentKey": "emq:q:p"}})
    return finish(queue, fetch(plain_client, 1)[0], "completed", "1")


def cannot_complete_before_its_children(queue, plain_client):
    put(plain_client, **{"a:dependencies": {"emq:q:x"}})
    finished = completes(queue, plain_client)
    assert finished.outcome == FAILED_INSTEAD
    return finished


def gives_back(queue, plain_client):
    return queue.requeue(held(plain_client, "a", "b", "c"))


def retries(queue, plain_client):
    put(plain_client, failed={"f": 5}, jobs={"f": JOB})
    queue.retry("f")


def purges(queue, plain_client):
    put(plain_client, wait=[str(at) for at in range(1_500)], meta={"version": "echomq:1"})
    queue.purge()


def pauses(queue, plain_client):
    put(plain_client, wait=["b", "a"])
    queue.set_paused(True)
    plain_client.delete("emq:q:events")


def resumes(queue, plain_client):
    put(plain_client, wait=["b"], paused=["a"], meta={"paused": "1"})
    queue.set_paused(False)
    plain_client.delete("emq:q:events")


CALLS = [
    adds,
    adds_delayed,
    adds_prioritized,
    adds_one_that_was_taken_in_between,
    completes,
    completes_and_removes,
    completes_a_child,
    cannot_complete_before_its_children,
    fails,
    fails_and_removes,
    gives_back,
    retries,
    purges,
    pauses,
    resumes,
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_sent_twice_leaves_what_one_does(client, call):
    once = call(a_queue(client), client), state(client)
    client.flushdb()

    twice = call(a_queue(SendsTwice(client)), client), state(client)

    assert twice == once


def test_a_job_that_another_worker_finished_is_no_repetition(client):
    [job] = held(client, "a")
    queue = a_queue(client)
    finish(queue, job, "completed", "1")

    assert finish(queue, job, "completed", "2").outcome == NOT_OWNED
    assert finish(queue, job, "failed", "2").outcome == NOT_OWNED

    assert state(client)["a"]["returnvalue"] == "1"


@pytest.fixture
def proxy(client):
    with LossyProxy(client.connection_pool.connection_kwargs["port"]) as proxy:
        yield proxy


@pytest.fixture
def lossy(client, proxy):
    """A broker whose replies can be lost."""
    take(EchoMQBroker(client=client, middleware=[]))  # the server knows the script
    broker = EchoMQBroker(client=redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 1)), middleware=[])
    yield broker
    broker.close()
    broker.client.close()


def test_a_message_whose_reply_is_lost_is_enqueued_once(client, proxy, lossy):
    add(lossy)
    proxy.lose(b"EVALSHA")

    job = add(lossy)

    assert proxy.lost == [b"EVALSHA"]
    assert client.lrange("emq:q:wait", 0, 0) == [id_of(job).encode()]
    assert client.llen("emq:q:wait") == 2


def test_jobs_whose_reply_is_lost_are_given_again(client, proxy, lossy):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))
    proxy.lose(b"EVALSHA")

    consumer, messages = take(lossy, 2)

    assert proxy.lost == [b"EVALSHA"]
    assert {id_of(message) for message in messages} == {"a", "b"}
    found = state(client)
    assert (found["wait"], found["active"], found["locks"]) == (["c"], ["b", "a"], {"a", "b"})
    assert [found[job_id]["ats"] for job_id in "ab"] == ["1", "1"]
    for message in messages:
        consumer.ack(message)
    assert set(state(client)["completed"]) == {"a", "b"}


def test_jobs_are_given_again_in_the_order_in_which_they_were_taken(client, proxy, lossy):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))
    proxy.lose(b"EVALSHA")

    _, messages = take(lossy, 3)

    assert [id_of(message) for message in messages] == ["a", "b", "c"]


def test_jobs_whose_replies_are_lost_again_and_again_are_given_once_redis_answers(client, proxy, lossy):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))
    proxy.lose(b"EVALSHA", b"EVALSHA")
    with pytest.raises(ConnectionClosed):
        take(lossy, 2)

    _, messages = take(lossy, 2)

    assert {id_of(message) for message in messages} == {"a", "b"}
    assert state(client)["wait"] == ["c"]


def test_what_was_lost_without_being_taken_is_taken_the_next_time(client, lossy, monkeypatch):
    """The request never arrived."""
    put(client, wait=["a"], jobs={"a": JOB})
    faults = Faults(monkeypatch)
    faults.plan("finishAndFetch-1.lua", *[redis.ConnectionError("it never arrived")] * 2)
    with pytest.raises(ConnectionClosed):
        take(lossy)

    assert take(lossy)[1] == []
    assert [id_of(message) for message in take(lossy)[1]] == ["a"]


@pytest.mark.parametrize("end", ["ack", "nack"])
def test_the_end_of_a_job_whose_reply_is_lost_is_no_loss(client, proxy, lossy, end, caplog):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(lossy)
    getattr(consumer, end)(message)
    put(client, wait=["b"], jobs={"b": JOB})
    consumer, [message] = take(lossy)
    proxy.lose(b"EVALSHA")

    getattr(consumer, end)(message)

    assert proxy.lost == [b"EVALSHA"]
    assert state(client)["b"]["atm"] == "1"
    assert lines(caplog, "WARNING", "ERROR") == []


def test_jobs_given_back_whose_reply_is_lost_are_given_back_once(client, proxy, lossy, caplog):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    consumer, messages = take(lossy, 2)
    consumer.requeue(messages)
    consumer, messages = take(lossy, 2)
    proxy.lose(b"EVALSHA")

    consumer.requeue(messages)

    assert proxy.lost == [b"EVALSHA"]
    found = state(client)
    assert (found["wait"], found["locks"]) == (["b", "a"], set())
    assert lines(caplog, "WARNING", "ERROR") == []
