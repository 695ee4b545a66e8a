"""When messages are due: in which order, by whose clock, and in how long."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta, timezone

import pytest
from freezegun import freeze_time

from dramatiq_echomq import EchoMQBroker, StalledChecker
from dramatiq_echomq.broker.jobs import NewJob
from dramatiq_echomq.broker.queue import Fetch
from dramatiq_echomq.validation import LARGEST_NUMBER

from ..support.job_data import JOB, ack, add, id_of, message, nack, take
from ..support.queue_data import DAY, event, put, state

MONTH = timedelta(days=30)


def on_a_clock(ahead: timedelta):
    """A worker whose clock is wrong by so much."""
    return freeze_time(datetime.now(timezone.utc) + ahead, tick=True)


def test_messages_of_one_ms_keep_their_order_beyond_the_4096_places_that_it_has(client, broker):
    due = 1_900_000_000_000
    put(client, delayed={str(at): due * 4096 + at for at in range(2 * 4_096 - 2)})

    for job_id in ("e", "a", "d", "b", "c"):
        broker.channel("q").queue.add([NewJob(job_id, "work", b"{}", when=due)])

    last = [job_id.decode() for job_id in client.zrange("emq:q:delayed", -5, -1)]
    assert last == ["e", "a", "d", "b", "c"]
    assert client.zscore("emq:q:delayed", "e") == (due + 2) * 4096 - 2
    assert client.zscore("emq:q:delayed", "c") == (due + 2) * 4096 + 2
    assert event("delayed", "c", delay=str(due)) in state(client)["events"]


@pytest.mark.parametrize("delay", [LARGEST_NUMBER, sys.maxsize, 1e300])
def test_a_delay_without_end_is_the_longest_that_there_is(client, broker, delay):
    """Some park a message like that."""
    sent = [add(broker, delay=delay), *broker.enqueue_many([(message(), delay)])]

    assert [each.options["eta"] for each in sent] == [LARGEST_NUMBER] * 2
    assert take(broker)[1] == []
    assert client.zcard("emq:q:delayed") == 2


@pytest.mark.parametrize("score", [float("inf"), 2.0**75, 2.0**66])
def test_a_job_that_is_due_at_the_end_of_time_lets_its_worker_wait(client, broker, score):
    put(client, delayed={"a": score}, jobs={"a": JOB})
    queue = broker.channel("q").queue

    reply = queue.finish_and_fetch([], Fetch("call", 1))

    assert reply.jobs == []
    assert 1_000_000 < reply.due_in <= 2**31


@pytest.mark.parametrize("ahead", [MONTH, -MONTH])
def test_a_worker_whose_clock_is_wrong_starts_a_message_when_it_is_due(client, ahead):
    with on_a_clock(ahead):
        broker = EchoMQBroker(client=client, middleware=[])
        late, soon = add(broker, delay=600_000), add(broker, delay=1)
        time.sleep(0.005)

        _, messages = take(broker, 2)

    assert [id_of(message) for message in messages] == [id_of(soon)]
    assert 570_000 < client.zscore("emq:q:delayed", id_of(late)) / 4096 - time.time() * 1000 <= 600_000


@pytest.mark.parametrize(("end", "finished"), [(ack, "completed"), (nack, "failed")])
def test_a_worker_whose_clock_is_wrong_writes_the_times_of_redis_and_prunes_by_them(client, end, finished):
    now = time.time() * 1000
    failed = {"old": now - 8 * DAY, "new": now - DAY}
    put(client, wait=["a"], jobs={"a": JOB, "old": {}, "new": {}}, failed=failed)

    with on_a_clock(MONTH):
        end(EchoMQBroker(client=client, middleware=[], keep_failed=100))

    job = state(client)["a"]
    times = [int(job["processedOn"]), int(job["finishedOn"]), client.zscore(f"emq:q:{finished}", "a")]
    assert all(now - 1 <= at < now + 60_000 for at in times)
    assert client.exists("emq:q:new")
    assert end is ack or not client.exists("emq:q:old")


def test_a_checker_whose_clock_is_wrong_writes_the_times_of_redis_and_prunes_by_them(client):
    now = time.time() * 1000
    opts = {"opts": '{"removeOnFail": {"age": 604800}}', "stc": "1"}
    put(client, active=["a"], stalled={"a"}, jobs={"a": opts, "old": {}, "new": {}})
    put(client, failed={"old": now - 8 * DAY, "new": now - DAY})

    with on_a_clock(MONTH):
        assert StalledChecker(client).check("q").failed_ids == ("a",)

    assert now - 1 <= client.zscore("emq:q:failed", "a") < now + 60_000
    assert (client.exists("emq:q:new"), client.exists("emq:q:old")) == (1, 0)
