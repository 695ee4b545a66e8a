"""Failed jobs that are older than `dead_message_ttl`: each check removes some of them."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import EchoMQBroker, SettingError, StalledChecker, StalledCheckerMiddleware
from dramatiq_echomq.protocol.records import StalledCheck

from ..support.queue_data import NOW, dump, put, state

#: When some jobs failed, by id: three minutes ago, two and one.
EARLIER = {"f180": NOW - 180_000, "f120": NOW - 120_000, "f60": NOW - 60_000}

pytestmark = pytest.mark.usefixtures("clock")


def put_failed(client, queue: str = "q") -> None:
    put(client, queue, failed=EARLIER, jobs={job_id: {} for job_id in EARLIER}, **{"f180:logs": ["line"]})


def test_a_check_of_a_queue_where_nothing_fails_removes_them_with_their_keys(client):
    put_failed(client)

    assert StalledChecker(client, dead_message_ttl=90_000).check("q") == StalledCheck("q")

    found = state(client)
    assert found["failed"] == {"f60": NOW - 60_000}
    assert not {"f180", "f120", "f180:logs"} & found.keys()


@pytest.mark.parametrize("settings", [{}, {"dead_message_ttl": None}, {"dead_message_ttl": 181_000}])
def test_none_is_removed_that_is_not_old_enough(client, settings):
    put_failed(client)

    StalledChecker(client, **settings).check("q")

    assert state(client)["failed"] == EARLIER


def test_a_bounded_number_goes_at_a_time(client):
    client.zadd("emq:q:failed", {f"old{number}": number for number in range(2_500)})
    checker = StalledChecker(client, dead_message_ttl=60_000, batch_size=10)
    put(client, active=[str(number) for number in range(50)], locks=[str(number) for number in range(50)])

    left = []
    for _ in range(3):
        checker.check("q")
        left.append(client.zcard("emq:q:failed"))

    assert left == [1_500, 500, 0]


@pytest.mark.parametrize(
    ("opts", "kept"), [({}, ["f60", "a"]), ({"removeOnFail": 9}, ["f60", "a"]), ({"removeOnFail": {"age": 1}}, ["a"])]
)
def test_a_job_that_a_check_fails_is_kept_as_long_as_others(client, opts, kept):
    put_failed(client)
    put(client, active=["a"], jobs={"a": {"opts": json.dumps(opts)}}, stalled={"a"})

    StalledChecker(client, dead_message_ttl=90_000, max_stalled_count=0).check("q")

    assert list(state(client)["failed"]) == kept


def test_a_skipped_check_and_a_report_remove_none(client):
    put_failed(client)
    client.set("emq:q:stalled-check", "another", px=60_000)
    checker = StalledChecker(client, dead_message_ttl=60_000)
    before = dump(client)

    assert checker.sweep("q").skipped
    checker.inspect("q")

    assert dump(client) == before


@pytest.mark.parametrize("ttl", [0, -1, 1.5, "long", True])
def test_a_ttl_that_cannot_be_used_is_named(client, ttl):
    with pytest.raises(SettingError, match="dead_message_ttl"):
        StalledChecker(client, dead_message_ttl=ttl)


@pytest.mark.parametrize(
    ("own", "is_removed"),
    [({}, True), ({"client": "the broker's"}, True), ({"client": "another"}, False), ({"prefix": "emq"}, False)],
    ids=["the broker's queues", "its client", "another client", "a prefix of its own"],
)
def test_the_middleware_removes_only_what_is_its_brokers(client, redis_url, own, is_removed):
    """Other runtimes keep their failed jobs for as long as they like."""
    broker = EchoMQBroker(client=client, middleware=[], dead_message_ttl=90_000)
    clients = {"the broker's": client, "another": type(client).from_url(redis_url)}
    own = {name: clients.get(value, value) for name, value in own.items()}
    middleware = StalledCheckerMiddleware(queues=["q"], **own)
    put_failed(client)

    middleware.recoverer_for(broker, None).check("q")

    assert ("f180" not in state(client)) is is_removed
