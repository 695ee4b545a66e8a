"""A worker that lost its job changes nothing any more."""

from __future__ import annotations

import pytest

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import Recorder, lines
from ..support.job_data import JOB, id_of, take
from ..support.lost_jobs import back_in_wait, removed, taken_by_another
from ..support.queue_data import NOW, put, state

pytestmark = pytest.mark.usefixtures("clock")


def back_in_wait_and_taken_again(client):
    back_in_wait(client)
    take(EchoMQBroker(client=client, middleware=[]))


def completed_elsewhere(client):
    client.delete("emq:q:a:lock", "emq:q:active")
    put(client, completed={"a": NOW - 5})
    client.hset("emq:q:a", "finishedOn", NOW - 5)


def failed_by_a_check(client):
    client.hset("emq:q:a", "stc", 1)
    back_in_wait(client)
    client.hset("emq:q:a", "finishedOn", NOW - 5)


LOST = pytest.mark.parametrize(
    "lose",
    [taken_by_another, back_in_wait, back_in_wait_and_taken_again, completed_elsewhere, failed_by_a_check, removed],
)
ENDS = pytest.mark.parametrize("end", ["ack", "nack", "requeue"])


def finish(consumer, message, end: str) -> None:
    if end == "nack":
        message.fail()
        message.stuff_exception(ValueError("it broke"))
    getattr(consumer, end)([message] if end == "requeue" else message)


@LOST
@ENDS
def test_nothing_is_changed_by_an_owner_whose_job_was(client, broker, lose, end, caplog):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)
    lose(client)
    before = state(client)
    caplog.clear()

    finish(consumer, message, end)

    assert state(client) == before
    [line] = lines(caplog, "WARNING", "ERROR", "CRITICAL")
    assert "'a'" in line
    assert "'q'" in line
    assert [record.levelname for record in caplog.records if record.name.startswith("dramatiq_echomq")] == ["WARNING"]


@LOST
@ENDS
def test_a_lost_job_is_let_go_of(client, broker, lose, end):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)
    lose(client)

    finish(consumer, message, end)

    assert not broker.in_flight.all()


@pytest.mark.parametrize("find_out", ["ack", "nack", "requeue", "renew"])
def test_the_middleware_hears_once_of_a_lost_lock_however_it_is_found(client, broker, find_out):
    put(client, wait=["a"], jobs={"a": JOB})
    recorder = Recorder()
    broker.add_middleware(recorder)
    consumer, [message] = take(broker)
    taken_by_another(client)

    if find_out == "renew":
        broker.locks.renew()
    else:
        finish(consumer, message, find_out)
    finish(consumer, message, "requeue")

    assert recorder.signals == [("lock lost", "q", "a")]


@ENDS
def test_a_job_that_is_known_to_be_lost_is_not_asked_for_again(client, broker, end, caplog):
    """The lock manager has said that it is lost."""
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)
    taken_by_another(client)
    broker.locks.renew()
    caplog.clear()
    before = state(client)

    finish(consumer, message, end)

    assert state(client) == before
    assert lines(caplog) == []


def test_those_that_were_not_lost_are_given_back(client, broker):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))
    consumer, messages = take(broker, 3)
    client.set("emq:q:b:lock", "of another worker")

    consumer.requeue(messages)

    found = state(client)
    assert (found["wait"], found["active"], found["locks"]) == (["c", "a"], ["b"], {"b"})


def test_a_lock_that_ended_unseen_is_set_again_by_the_ack(client, broker, monkeypatch):
    """Nobody recovered the job: its owner may come back."""
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, [message] = take(broker)
    client.delete("emq:q:a:lock")
    message.job.renewed_at -= 31

    consumer.ack(message)

    assert state(client)["completed"] == {"a": NOW}


def test_a_job_is_its_owners_on_whichever_consumer(client, broker):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    consumer, [first, second] = take(broker, 2)
    assert (id_of(first), id_of(second)) == ("a", "b")
    consumer.close()

    broker.consume("q").ack(first)
    broker.consume("q").nack(second)

    found = state(client)
    assert (set(found["completed"]), set(found["failed"])) == ({"a"}, {"b"})
