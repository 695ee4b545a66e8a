"""The first that has to tell Redis something waits for others that are about to, and never when it is alone."""

from __future__ import annotations

import threading
import time

import pytest

from dramatiq_echomq.broker.group_commit import GroupCommit, Part
from dramatiq_echomq.broker.parts import FetchPart

from ..support.job_data import JOB, take
from ..support.queue_data import put, state
from ..support.servers import wait_until


class Submitter(threading.Thread):
    def __init__(self, calls: GroupCommit) -> None:
        super().__init__(daemon=True)
        self.calls = calls
        self.start()

    def run(self) -> None:
        self.calls.submit(Part())


class Gathering(GroupCommit):
    """Calls that always wait for more."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def expects_more(self) -> bool:
        return True

    def send(self, parts) -> None:
        self.batches.append(len(parts))
        for part in parts:
            part.settle()


@pytest.mark.parametrize("coming", [0, 1, 7])
def test_the_first_waits_as_long_as_each_pause_brings_more(coming, monkeypatch):
    def pause(_):
        if len(threads) < coming:
            threads.append(Submitter(calls))
            wait_until(lambda: len(calls.pending) == len(threads) + 1)

    calls, threads, sleep = Gathering(), [], time.sleep
    monkeypatch.setattr("dramatiq_echomq.broker.group_commit.PAUSE", None)  # by which this knows a pause
    monkeypatch.setattr(time, "sleep", lambda seconds: pause(seconds) if seconds is None else sleep(seconds))
    calls.submit(Part())
    for thread in threads:
        thread.join(20)
    assert calls.batches == [1 + coming]


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_the_end_of_a_job_that_is_alone_waits_for_nobody(client, broker, pauses):
    put(client, wait=["a"], jobs={"a": JOB})
    consumer, (message,) = take(broker, 1)
    consumer.ack(message)
    assert [*state(client)["completed"]] == ["a"]
    assert not pauses


def test_the_end_of_a_job_waits_only_for_those_that_have_just_been_fetched(client, broker, pauses, monkeypatch):
    put(client, wait=["c", "b", "a"], jobs=dict.fromkeys("abc", JOB))
    monkeypatch.setattr("dramatiq_echomq.broker.channel.QUICK", 60.0)  # they have just been fetched
    consumer, messages = take(broker, 3)
    consumer.ack(messages[0])
    assert len(pauses) == 1  # and then, since that brought none, no more
    monkeypatch.setattr("dramatiq_echomq.broker.channel.QUICK", -1.0)  # it is long since they were fetched
    consumer.ack(messages[1])
    assert len(pauses) == 1


def test_a_fetch_for_a_free_thread_waits_for_nobody(client, broker, pauses):
    put(client, wait=["b", "a"], jobs=dict.fromkeys("ab", JOB))
    take(broker, 1)
    broker.channel("q").submit(FetchPart(broker.in_flight.threads.reserve("q", prefetch=2)))
    assert [*state(client)["active"]] == ["b", "a"]
    assert not pauses
