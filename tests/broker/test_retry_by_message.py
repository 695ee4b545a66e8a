"""A failed job is tried again by the id of its message, which Dramatiq's log lines show."""

from __future__ import annotations

import pickle

import dramatiq
import pytest
from dramatiq.encoder import PickleEncoder

from dramatiq_echomq.protocol import job_pages

from ..support.brokers import working
from ..support.job_data import add, id_of, message, take
from ..support.queue_data import put, state


def failed(broker, *args) -> tuple[dramatiq.Message, dramatiq.MessageProxy]:
    """A message as `send` returned it, and as the worker had it whose job failed."""
    sent = add(broker, *args)
    consumer, [taken] = take(broker)
    consumer.nack(taken)
    return sent, taken


@pytest.mark.parametrize(
    "by",
    [
        lambda sent, taken: id_of(sent),
        lambda sent, taken: sent.message_id,
        lambda sent, taken: sent.message_id.encode(),
        lambda sent, taken: sent,
        lambda sent, taken: taken,
    ],
    ids=["the job's id", "the message's id", "bytes", "the message", "the message of a worker"],
)
def test_a_job_is_retried_by_its_id_by_its_message_or_by_the_id_of_that(client, broker, by):
    sent, taken = failed(broker, 1)
    failed(broker, 2)

    assert broker.retry("q", by(sent, taken)) is True
    assert broker.retry("q", by(sent, taken)) is False

    found = state(client)
    assert (found["wait"], len(found["failed"])) == ([id_of(sent)], 1)


def test_of_a_message_that_was_retried_the_last_job_is_the_one(client, full_broker):
    runs = []

    @dramatiq.actor(max_retries=2, min_backoff=1, max_backoff=1)
    def work():
        runs.append(1)
        raise RuntimeError("it broke")

    sent = work.send()
    with working(full_broker):
        full_broker.join("default", timeout=20_000)
        assert full_broker.retry("default", sent.message_id) is True
        full_broker.join("default", timeout=20_000)
        assert full_broker.retry("default", sent) is True
        full_broker.join("default", timeout=20_000)

    assert len(runs) == 5
    counts = full_broker.get_queue_message_counts("default")
    assert (counts.completed, counts.failed) == (2, 1)


@pytest.mark.parametrize("jobs", [0, 1, 5])
def test_it_is_found_among_many_in_bounded_calls(client, broker, monkeypatch, jobs):
    monkeypatch.setattr(job_pages, "STEP", 2)
    others = [failed(broker, number) for number in range(jobs)]
    sent, _ = failed(broker, "it")
    others += [failed(broker, number) for number in range(jobs)]

    assert broker.retry("q", sent.message_id) is True

    assert state(client)["wait"] == [id_of(sent)]


def test_an_id_in_the_arguments_of_another_job_is_no_id_of_that(client, broker):
    sent, _ = failed(broker, 1)
    failed(broker, sent.message_id)

    assert broker.retry("q", sent.message_id) is True
    assert broker.retry("q", sent.message_id) is False


def test_a_pickled_message_is_found_too(client, broker, monkeypatch):
    monkeypatch.setattr("dramatiq.message.global_encoder", PickleEncoder())
    sent, _ = failed(broker, "x" * 100_000)
    failed(broker, sent.message_id)

    assert broker.retry("q", sent.message_id[:8]) is False
    assert broker.retry("q", sent.message_id) is True
    assert broker.retry("q", sent.message_id) is False


@pytest.mark.parametrize("unknown", ["no-such-id", "", b"\xff\xfe", pytest.param(message(1), id="message")], ids=repr)
def test_an_unknown_id_changes_nothing(client, broker, unknown):
    failed(broker, 1)
    put(client, failed={"pickled": 5}, jobs={"pickled": {"data": pickle.dumps([1])}})
    before = state(client)

    assert broker.retry("q", unknown) is False

    assert state(client) == before
