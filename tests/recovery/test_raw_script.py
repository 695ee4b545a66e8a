"""The script as other runtimes call it: one file, eight keys, three arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from dramatiq_echomq.protocol.replies import StalledReply

from ..support.queue_data import BACK, as_data, came_back, dump, put, state, was_failed

SCRIPT = (Path(__file__).parent.parent.parent / "lua" / "moveStalledJobsToWait-8.lua").read_text("utf-8")
KEYS = ["stalled", "wait", "active", "failed", "stalled-check", "meta", "paused", "marker"]
STALL_LIMIT = "job stalled more than allowable limit"
FAILED = {"stc": "2", "atm": "1", "failedReason": STALL_LIMIT, "finishedOn": "1700"}


def call(client, *further, prefix="emq:q:", max_stalled_count="1", timestamp="1700"):
    keys = [f"emq:q:{name}" for name in KEYS]
    return client.eval(SCRIPT, 8, *keys, prefix, max_stalled_count, timestamp, *further)


@pytest.mark.parametrize("prefix", ["emq:q:", "emq:q"], ids=["with colon", "without colon"])
def test_three_arguments_make_one_whole_unthrottled_check(client, prefix):
    put(
        client,
        active=["healthy", "ghost", "fresh", "poison", "dead"],
        jobs={"healthy": {}, "fresh": {}, "poison": {"stc": "1"}, "dead": {}},
        locks=["healthy"],
        stalled={"dead", "poison", "healthy", "gone"},
        stalled_check="held",
    )

    assert call(client, prefix=prefix)[:2] == [1, 1]

    assert state(client) == as_data(
        active=["healthy", "fresh"],
        wait=["dead"],
        failed={"poison": 1700},
        jobs={"healthy": {}, "fresh": {}, "dead": BACK, "poison": FAILED},
        locks=["healthy"],
        stalled={"fresh"},
        stalled_check="held",
        marker={"0": 0},
        events=[*came_back("dead"), *was_failed("poison", STALL_LIMIT)],
    )


def test_the_first_call_marks_and_the_second_recovers(client):
    put(client, active=["a"], jobs={"a": {}})

    assert [call(client)[:2], call(client)[:2]] == [[0, 0], [1, 0]]


def test_a_call_with_three_arguments_is_not_bounded(client):
    ids = [str(number) for number in range(9_000)]
    put(client, active=ids, stalled=set(ids[:10]))

    assert call(client)[:5] == [0, 0, -1, 0, 9_000]

    assert dump(client) == {}


def test_a_queue_without_any_key_has_nothing_to_recover(client):
    assert call(client)[:2] == [0, 0]
    assert dump(client) == {}


def test_the_throttle_holds_for_callers_without_a_sweep_id(client):
    """Only a fourth argument asks for the throttle. Two callers that both have no id are still two."""
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})

    assert call(client, "60000")[:3] == [1, 0, -1]
    recovered, failed, waits = call(client, "60000")[:3]

    assert (recovered, failed) == (0, 0)
    assert 0 < waits <= 60_000


@pytest.mark.parametrize(
    "arguments", [{"max_stalled_count": "many"}, {"max_stalled_count": ""}, {"timestamp": "now"}, {"timestamp": ""}]
)
def test_arguments_that_are_no_numbers_are_refused_and_nothing_is_written(client, arguments):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})
    before = dump(client)

    with pytest.raises(redis.ResponseError, match="must be numbers"):
        call(client, **arguments)

    assert dump(client) == before


def test_a_refusal_is_an_error_reply(client):
    put(client, active={"a": 1})

    with pytest.raises(redis.ResponseError, match="ECHOMQ refuses the queue: emq:q:active is a zset"):
        call(client)


def test_the_script_runs_where_it_may_write_nothing_outside_its_queue(client):
    put(client, "other", active=["a"], jobs={"a": {}}, stalled={"a"})
    before = dump(client)
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})

    call(client)

    client.delete(*client.keys("emq:q:*"))
    assert dump(client) == before


def test_a_call_that_recovers_more_than_lua_can_unpack_tells_of_each(client):
    ids = [f"job {number}" for number in range(9_000)]
    with client.pipeline(transaction=False) as pipeline:
        for number, job_id in enumerate(ids):
            pipeline.hset(f"emq:q:{job_id}", "processedOn", 1700 - number)
        pipeline.execute()
    put(client, active=ids, stalled=set(ids))

    reply = StalledReply(*call(client))

    assert (reply.recovered, reply.recovered_ids()) == (9_000, ids[::-1])
    assert reply.recovered_ages() == list(range(8_999, -1, -1))
