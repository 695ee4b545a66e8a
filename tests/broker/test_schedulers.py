"""Jobs of BullMQ's job schedulers: the worker that takes one adds the next."""

from __future__ import annotations

import json
import sys

import pytest
import redis
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.schedulers import SchedulerStopped, next_run

from ..support.brokers import lines
from ..support.queue_data import NOW, put, state


@pytest.fixture
def broker(client, clock):
    broker = EchoMQBroker(client=client, middleware=[])
    yield broker
    broker.close()


def put_scheduler(client, plan: dict, *, due: int = NOW, opts: dict | None = None) -> str:
    job_id = f"repeat:daily:{due}"
    put(
        client,
        wait=[job_id],
        jobs={job_id: {"rjk": "daily", "opts": json.dumps(opts or {"repeat": {"every": 1000, "count": 1}})}},
        repeat={"daily": due},
    )
    client.hset("emq:q:repeat:daily", mapping={"name": "work", "data": '{"args": [7]}', "ic": "1", **plan})
    return job_id


def take_one(broker):
    return next(broker.consume("q", prefetch=2, timeout=50))


def test_the_next_job_of_an_interval_is_added_when_one_is_taken(client, broker):
    job_id = put_scheduler(client, {"every": "1000"})

    assert take_one(broker).job.job_id == job_id

    after, following = state(client), f"repeat:daily:{NOW + 1000}"
    assert after["repeat"] == {"daily": NOW + 1000}
    assert after["repeat:daily"]["ic"] == "2"
    assert after["delayed"] == {following: (NOW + 1000) * 4096}
    assert after["marker"]["1"] == NOW + 1000
    assert after[job_id]["nrjid"] == following
    job = after[following]
    opts = json.loads(job.pop("opts"))
    assert job == {
        "name": "work",
        "data": '{"args": [7]}',
        "timestamp": str(NOW),
        "delay": "1000",
        "priority": "0",
        "rjk": "daily",
    }
    assert opts == {
        "repeat": {"every": 1000, "count": 2},
        "prevMillis": NOW + 1000,
        "delay": 1000,
        "timestamp": NOW,
        "jobId": following,
    }


@pytest.mark.parametrize(
    ("due", "offset", "expected"),
    [
        (NOW, "0", NOW + 1000),
        (NOW - 10_000, "0", NOW // 1000 * 1000 + 1000),
        (NOW - 10_000, "250", NOW // 1000 * 1000 + (250 if NOW % 1000 < 250 else 1250)),
    ],
)
def test_runs_that_were_missed_are_left_out(client, broker, due, offset, expected):
    put_scheduler(client, {"every": "1000", "offset": offset}, due=due)

    take_one(broker)

    assert state(client)["repeat"] == {"daily": expected}


def test_the_next_job_of_a_cron_pattern_is_added(client, broker):
    put_scheduler(client, {"pattern": "0 3 * * *", "tz": "Europe/Berlin"})

    take_one(broker)

    due = next_run("0 3 * * *", "Europe/Berlin", NOW)
    assert due > NOW
    assert state(client)["repeat"] == {"daily": due}
    assert f"repeat:daily:{due}" in state(client)


@pytest.mark.parametrize(
    "plan",
    [{"every": "1000", "limit": "1"}, {"every": "1000", "endDate": str(NOW - 1)}, {}, {"every": "0"}],
)
def test_a_scheduler_that_has_ended_adds_nothing(client, broker, plan):
    put_scheduler(client, plan)

    assert take_one(broker) is not None
    assert state(client)["repeat"] == {"daily": NOW}


def test_a_job_that_is_not_the_latest_of_its_scheduler_adds_nothing(client, broker):
    put_scheduler(client, {"every": "1000"})
    client.zadd("emq:q:repeat", {"daily": NOW + 5000})

    assert take_one(broker) is not None
    assert state(client)["repeat"] == {"daily": NOW + 5000}


def test_a_scheduler_that_was_removed_adds_nothing_and_its_job_runs(client, broker):
    put_scheduler(client, {"every": "1000"})
    client.delete("emq:q:repeat", "emq:q:repeat:daily")

    assert take_one(broker) is not None
    assert "repeat" not in state(client)


@pytest.mark.parametrize("pattern", ["* * *", "61 * * * *", "nonsense"])
def test_a_pattern_that_is_none_is_told_and_its_job_runs(client, broker, caplog, pattern):
    put_scheduler(client, {"pattern": pattern})

    assert take_one(broker) is not None
    assert "Job scheduler 'daily' of queue 'q' stops" in caplog.text
    assert state(client)["repeat"] == {"daily": NOW}


@pytest.mark.parametrize("plan", [{"pattern": "* * *\n\x1b[31m"}, {"pattern": "* * * * *", "tz": "UTC\nERROR forged"}])
def test_no_pattern_or_time_zone_breaks_the_log_line(client, broker, caplog, plan):
    put_scheduler(client, plan)

    assert take_one(broker) is not None

    [line] = lines(caplog, "ERROR")
    assert line.isprintable()


def test_without_the_package_for_patterns_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "croniter", None)

    with pytest.raises(SchedulerStopped, match=r'pip install "dramatiq-echomq\[schedulers\]"'):
        next_run("* * * * *", None, NOW)


def test_patterns_have_their_seconds_first():
    assert next_run("30 * * * * *", None, 0) == 30_000


def test_a_scheduler_goes_on_after_an_outage_at_the_wrong_moment(client, broker, monkeypatch):
    put_scheduler(client, {"every": "1000"})
    queue = broker.channel("q").queue
    advance, tries = queue.advance_scheduler, []

    def advance_at_the_second_try(job):
        tries.append(job)
        if len(tries) == 1:
            raise redis.ConnectionError("Redis is away")
        advance(job)

    monkeypatch.setattr(queue, "advance_scheduler", advance_at_the_second_try)
    with pytest.raises(ConnectionClosed):
        take_one(broker)
    consumer = broker.consume("q", prefetch=2, timeout=50)
    assert next(consumer) is not None
    next(consumer)

    assert state(client)["repeat"] == {"daily": NOW + 1000}


@pytest.mark.parametrize(
    "kept",
    [
        '"huge":1e999,"small":-1e999',
        '"empty":[],"object":{},"digits":1234567890123456789',
        '"exact":0.10000000000000000001,"nothing":null',
        '"text":"\\u00fc \\ud83d\\ude00 \\/ ü"',
        f'"longest":{"9" * 5_000}',
        '"nested":{"a":[1.0,[],{"b":1e400}]}',
    ],
)
def test_the_opts_of_the_next_job_are_those_of_the_last_as_they_were_written(client, broker, kept):
    opts = f'{{ {kept} , "repeat" : {{{kept},"count":7}}, "delay":5}}'
    job_id = put_scheduler(client, {"every": "1000"})
    client.hset(f"emq:q:{job_id}", "opts", opts)

    take_one(broker)

    following = f"repeat:daily:{NOW + 1000}"
    assert state(client)[following]["opts"] == (
        f'{{{kept},"repeat":{{{kept},"count":8}},"delay":1000,"prevMillis":{NOW + 1000},"timestamp":{NOW},'
        f'"jobId":"{following}"}}'
    )


@pytest.mark.parametrize("opts", ["", "null", "[1]", "{never closed", '{"repeat": [1]}', "[" * 100_000])
def test_opts_that_are_no_object_count_as_empty_and_the_scheduler_goes_on(client, broker, opts):
    job_id = put_scheduler(client, {"every": "1000"})
    client.hset(f"emq:q:{job_id}", "opts", opts)

    take_one(broker)

    job = state(client)[f"repeat:daily:{NOW + 1000}"]
    assert json.loads(job["opts"])["repeat"] == {"count": 1}


@pytest.mark.parametrize(
    "plan", [{"every": "1e999"}, {"every": "1e-300"}, {"every": "nan"}, {"every": "x", "pattern": "x"}]
)
def test_a_schedule_that_makes_no_sense_moves_nothing_on(client, broker, plan):
    put_scheduler(client, plan, due=NOW - 1)

    assert take_one(broker) is not None
    assert state(client)["repeat"] == {"daily": NOW - 1}
    assert "delayed" not in state(client)
