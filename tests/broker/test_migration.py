"""Moving the messages of a RedisBroker, in their order."""

from __future__ import annotations

import json
import time

import pytest
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import SettingError
from dramatiq_echomq.migration import BATCH_SIZE, iter_move, move_from_redis_broker, queues_of

from ..support.brokers import lines
from ..support.job_data import message, take
from ..support.old_messages import arguments, fetch, old_keys, send
from ..support.queue_data import DAY, state


def test_messages_are_moved_in_their_order_with_their_ids(client, old_broker, broker):
    ids = send(old_broker, *range(3 * BATCH_SIZE // 2))

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.queue_name, move.total, move.waiting, move.moved, move.left) == ("q", 150, 150, 150, 0)
    assert arguments(client) == list(range(150))
    assert old_keys(client) == set()
    assert not client.exists("emq:q:echomq:moved")
    _, [first] = take(broker)
    assert (first.message_id, first.queue_name, first.args) == (ids[0], "q", (0,))
    assert set(first.options) == {"echomq_job_id"}


def test_delayed_messages_wait_for_their_time(client, old_broker, broker):
    send(old_broker, 1, delay=DAY)
    send(old_broker, 2, delay=-1_000)

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.waiting, move.delayed) == (0, 2)
    found = state(client)
    [(job_id, score)] = found["delayed"].items()
    due = score / 4096
    assert DAY - 10_000 < due - time.time() * 1000 <= DAY
    assert json.loads(found[job_id]["data"])["args"] == [1]
    assert arguments(client) == [2]


def test_dead_letters_become_failed_jobs_that_can_be_tried_again(client, old_broker, broker):
    trace = "Traceback (most recent call last):\n  ...\nRuntimeError: it broke\n"
    send(old_broker, 1, traceback=trace)
    send(old_broker, 2)
    for dead in fetch(old_broker, 2, worker="w"):
        old_broker.do_nack("q", dead.options["redis_message_id"])
    [(_, died_at), _] = client.zrange("dramatiq:q.XQ", 0, -1, withscores=True)

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.total, move.dead, move.left) == (2, 2, 0)
    assert old_keys(client) == set()
    found = state(client)
    jobs = {json.loads(found[job_id]["data"])["args"][0]: found[job_id] for job_id in found["failed"]}
    assert jobs[1]["failedReason"] == "RuntimeError: it broke"
    assert json.loads(jobs[1]["stacktrace"]) == [trace]
    assert jobs[2]["failedReason"] == "a dead letter of RedisBroker"
    assert jobs[1]["finishedOn"] == str(int(died_at))
    assert "events" not in found
    assert all(broker.retry("q", job_id) for job_id in found["failed"])
    _, messages = take(broker, 2)
    assert sorted(taken.args[0] for taken in messages) == [1, 2]


def test_what_a_dead_worker_held_goes_first_and_what_a_living_one_holds_is_left_to_it(client, old_broker, broker):
    send(old_broker, *range(6))
    fetch(old_broker, 2, worker="dead", heard_of=61)
    running = fetch(old_broker, 2, worker="alive", heard_of=50)

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.total, move.waiting, move.left, move.held, move.undecodable) == (6, 4, 2, 2, 0)
    moved = arguments(client)
    assert (sorted(moved[:2]), moved[2:]) == ([0, 1], [4, 5])  # those that it held have no order but their age in ms
    for held in running:
        old_broker.do_ack("q", held.options["redis_message_id"])
    assert old_keys(client) == set()


def test_what_a_worker_has_fetched_of_the_delayed_ones_is_moved_as_well(client, old_broker, broker):
    send(old_broker, 1, 2, delay=DAY)
    fetch(old_broker, 1, worker="dead", heard_of=61, queue="q.DQ")

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.delayed, move.left) == (2, 0)
    assert len(state(client)["delayed"]) == 2


def test_what_cannot_be_decoded_is_left_where_it_is_and_found_by_the_next_move(client, old_broker, broker, caplog):
    send(old_broker, 1, 2, 3)
    bad = client.lindex("dramatiq:q", 1).decode()
    good = client.hget("dramatiq:q.msgs", bad)
    client.hset("dramatiq:q.msgs", bad, b"\x80pickled")
    client.zadd("dramatiq:q.XQ", {"dead": 1})
    client.hset("dramatiq:q.XQ.msgs", "dead", b"\x80pickled")

    [move] = move_from_redis_broker(old_broker, broker)

    assert (move.waiting, move.left, move.held, move.undecodable) == (2, 2, 0, 2)
    assert len([line for line in lines(caplog, "WARNING") if "cannot decode" in line]) == 2
    client.hset("dramatiq:q.msgs", bad, good)
    [move] = move_from_redis_broker(old_broker, broker)
    assert (move.waiting, move.left, move.undecodable) == (1, 1, 1)
    assert arguments(client) == [1, 3, 2]


def test_ids_without_a_message_are_dropped(client, old_broker, broker):
    send(old_broker, 1)
    client.rpush("dramatiq:q", "nothing")
    client.zadd("dramatiq:q.XQ", {"nothing": 1})

    [move] = move_from_redis_broker(old_broker, broker, ["q"])

    assert (move.moved, move.left, old_keys(client)) == (1, 0, set())


def test_a_message_with_an_option_that_cannot_be_used_becomes_a_failed_job(client, old_broker, broker):
    send(old_broker, 1, max_retries="3")
    send(old_broker, 2, max_stalled_count=0)

    move_from_redis_broker(old_broker, broker)

    found = state(client)
    [job_id] = found["failed"]
    assert "max_retries (option of the message) is '3'" in found[job_id]["failedReason"]
    assert [json.loads(found[job_id]["opts"]) for job_id in found["wait"]] == [{"maxStalledCount": 0}]


def test_the_progress_says_how_far_it_is(old_broker, broker):
    send(old_broker, *range(150))
    send(old_broker, 1, delay=DAY)
    seen = []

    move_from_redis_broker(old_broker, broker, progress=seen.append)

    assert [(move.total, move.waiting, move.delayed) for move in seen if move.moved][:2] == [
        (151, 100, 0),
        (151, 150, 0),
    ]
    assert seen[0].moved == 0
    assert seen[-1].moved == 151
    assert next(iter_move(old_broker, broker, "q")).total == 0


def test_all_queues_of_the_namespace_are_found(client, broker):
    old_broker = RedisBroker(client=client, namespace="a[b]*", middleware=[], maintenance_chance=0)
    for queue in ("one", "two"):
        old_broker.enqueue(message(1, queue=queue), delay=5_000 if queue == "two" else None)
    client.hset("a[b]*:three.XQ.msgs", "dead", "x")
    client.hset("axb:four.msgs", "other", "x")

    assert queues_of(old_broker) == ["one", "three", "two"]
    assert [move.queue_name for move in move_from_redis_broker(old_broker, broker)] == ["one", "three", "two"]
    assert broker.get_queue_message_counts("two").delayed == 1


def test_queues_are_a_list(old_broker, broker):
    with pytest.raises(SettingError, match="queues"):
        move_from_redis_broker(old_broker, broker, "q")
