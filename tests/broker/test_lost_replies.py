"""A script of the broker whose reply is lost is sent again, and nothing happens twice."""

from __future__ import annotations

import pytest
import redis
from dramatiq.errors import ConnectionClosed
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import EchoMQBroker, QueueCounts
from dramatiq_echomq.broker.shares import Share
from dramatiq_echomq.protocol import interruptible
from dramatiq_echomq.protocol.scripts import load

from ..support.brokers import lines
from ..support.faults import Faults
from ..support.job_data import JOB, SUSPECT, add, id_of, take
from ..support.proxy import LossyProxy, Switch
from ..support.queue_data import put, state
from ..support.servers import Server


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


@pytest.mark.skipif(not interruptible._NEEDS_NO_NAME, reason="older versions of redis-py send commands themselves")
@pytest.mark.parametrize("options", [{}, {"broker_priority": 2}], ids=["plain", "priority"])
@pytest.mark.parametrize("forgets_scripts", [False, True], ids=["", "restarted"])
def test_a_message_whose_job_has_run_and_was_not_kept_is_not_enqueued_again(
    client, proxy, lossy, monkeypatch, options, forgets_scripts
):
    worker, ran = EchoMQBroker(client=client, middleware=[], keep_completed=0), []

    def run_it(_):
        """What happens while the client waits before it sends the call again."""
        consumer, messages = take(worker, 5)
        for message in messages:
            ran.append(message.args)
            consumer.ack(message)
        if forgets_scripts:
            client.script_flush()

    monkeypatch.setattr("redis.retry.sleep", run_it)
    add(lossy, "earlier")
    proxy.lose(b"EVALSHA")
    add(lossy, "lost", **options)

    assert proxy.lost == [b"EVALSHA"]
    assert ran == [("earlier",), ("lost",)]
    assert worker.get_queue_message_counts("q") == QueueCounts(0, 0, 0, 0, 0, 0, 0)


def test_a_message_whose_job_has_run_meanwhile_is_not_enqueued_again_after_a_failover(client, broker, monkeypatch):
    worker, commands = EchoMQBroker(client=client, middleware=[], keep_completed=0), broker.connections.commands
    execute = commands.execute_command

    def run_it_and_fail_over(*words, **options):
        """The reply was lost, the job has run, and the call that is sent again finds a replica."""
        monkeypatch.setattr(commands, "execute_command", execute)
        execute(*words, **options)
        consumer, [message] = take(worker, 5)
        consumer.ack(message)
        raise redis.exceptions.ReadOnlyError("You can't write against a read only replica.")

    add(broker, "earlier")
    consumer, [message] = take(worker, 5)
    consumer.ack(message)
    monkeypatch.setattr(commands, "execute_command", run_it_and_fail_over)
    add(broker, "lost")

    assert worker.get_queue_message_counts("q") == QueueCounts(0, 0, 0, 0, 0, 0, 0)


def test_of_a_call_that_may_have_been_made_before_is_added_what_is_new(client):
    def add_again(*job_ids: str) -> int:
        jobs = [value for job_id in job_ids for value in (job_id, "work", "[]", "{}", "0", "0")]
        return load("addJobs-1.lua")(client, ["emq:q:meta"], ["emq:q:", 0, "echomq:1", 2, *jobs])

    assert add_again("a", "b") == 2
    client.delete("emq:q:a", "emq:q:wait")  # it has run

    assert add_again("a", "b", "c") == 1
    found = state(client)
    assert (found["wait"], "a" in found, "c" in found, found["id"]) == (["c"], False, True, "3")


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


@pytest.mark.parametrize("fetched", [[], ["b"]], ids=["nothing", "a suspect"])
def test_a_fetch_that_was_about_to_be_made_frees_what_an_ack_whose_reply_is_lost_had_reserved(
    client, broker, monkeypatch, fetched
):
    put(client, wait=["a"], jobs={"a": JOB, "b": SUSPECT})
    consumer, [message] = take(broker)
    if fetched:
        put(client, wait=fetched)
    threads, channel = broker.in_flight.threads, broker.channel("q")
    threads.turns.wanting["q"] = 1  # as while a consumer waits for a thread
    Faults(monkeypatch).plan("finishAndFetch-1.lua", redis.TimeoutError("lost"), has_run=True)
    consumer.ack(message)
    assert not threads.may_run_suspect("q")

    channel.fetch(Share("q", 1, 0))

    found = channel.arrivals.messages.take_all()
    assert [id_of(message) for message in found] == fetched
    for message in found:
        consumer.ack(message)
    assert threads.may_run_suspect("q")


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


def test_a_connection_that_still_leads_to_the_old_master_is_replaced():
    """Nothing was written there: the call is made again, with what the address leads to by now."""
    with Server() as old, Server() as new, Switch(old.port) as switch, new.client() as at_new, old.client() as at_old:
        broker = EchoMQBroker(host="127.0.0.1", port=switch.port, middleware=[])
        add(broker, 1)
        at_old.replicaof("127.0.0.1", new.port)
        switch.to(new.port, drop=False)

        add(broker, 2)

        assert at_new.llen("emq:q:wait") == 1
        broker.close()
