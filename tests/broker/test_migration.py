"""Moving the messages of a RedisBroker: in order, once, and again after an interruption."""

from __future__ import annotations

import json
import time

import pytest
import redis
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker
from dramatiq.common import current_millis

from dramatiq_echomq import EchoMQBroker, SettingError
from dramatiq_echomq.broker.moved_jobs import MovedJobs
from dramatiq_echomq.migration import BATCH_SIZE, iter_move, move_from_redis_broker, queues_of

from ..support.brokers import lines
from ..support.job_data import message, take
from ..support.queue_data import state

DAY = 86_400_000


@pytest.fixture
def old(client) -> RedisBroker:
    broker = RedisBroker(client=client, middleware=[])
    broker.declare_queue("q")
    return broker


def send(old: RedisBroker, *numbers: int, delay: int | None = None, **options) -> list[str]:
    """Send messages with these arguments, and return their message ids."""
    return [old.enqueue(message(number, **options), delay=delay).message_id for number in numbers]


def fetch(old: RedisBroker, count: int, *, worker: str, heard_of: float = 0, queue: str = "q") -> list[Message]:
    """Fetch messages as a worker that was heard of so many seconds ago."""
    old.broker_id = worker
    messages = [Message.decode(data) for data in old.do_fetch(queue, count)]
    old.client.zadd("dramatiq:__heartbeats__", {worker: current_millis() - heard_of * 1000})
    return messages


def arguments(client) -> list[int]:
    """What the jobs that wait are about, the next one first."""
    jobs = reversed(client.lrange("emq:q:wait", 0, -1))
    return [json.loads(client.hget(f"emq:q:{job_id.decode()}", "data"))["args"][0] for job_id in jobs]


def old_keys(client) -> set[bytes]:
    return {key for key in client.scan_iter("dramatiq:*") if key != b"dramatiq:__heartbeats__"}


def test_messages_are_moved_in_their_order_with_their_ids(client, old, broker):
    ids = send(old, *range(3 * BATCH_SIZE // 2))

    [move] = move_from_redis_broker(old, broker)

    assert (move.queue_name, move.total, move.waiting, move.moved, move.left) == ("q", 150, 150, 150, 0)
    assert arguments(client) == list(range(150))
    assert old_keys(client) == set()
    assert not client.exists("emq:q:echomq:moved")
    _, [first] = take(broker)
    assert (first.message_id, first.queue_name, first.args) == (ids[0], "q", (0,))
    assert set(first.options) == {"echomq_job_id"}


def test_delayed_messages_wait_for_their_time(client, old, broker):
    send(old, 1, delay=DAY)
    send(old, 2, delay=-1_000)

    [move] = move_from_redis_broker(old, broker)

    assert (move.waiting, move.delayed) == (0, 2)
    found = state(client)
    [(job_id, score)] = found["delayed"].items()
    due = score / 4096
    assert DAY - 10_000 < due - time.time() * 1000 <= DAY
    assert json.loads(found[job_id]["data"])["args"] == [1]
    assert arguments(client) == [2]


def test_dead_letters_become_failed_jobs_that_can_be_tried_again(client, old, broker):
    trace = "Traceback (most recent call last):\n  ...\nRuntimeError: it broke\n"
    send(old, 1, traceback=trace)
    send(old, 2)
    for dead in fetch(old, 2, worker="w"):
        old.do_nack("q", dead.options["redis_message_id"])
    [(_, died_at), _] = client.zrange("dramatiq:q.XQ", 0, -1, withscores=True)

    [move] = move_from_redis_broker(old, broker)

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


def test_what_a_dead_worker_held_goes_first_and_what_a_living_one_holds_is_left_to_it(client, old, broker):
    send(old, *range(6))
    fetch(old, 2, worker="dead", heard_of=61)
    running = fetch(old, 2, worker="alive", heard_of=50)

    [move] = move_from_redis_broker(old, broker)

    assert (move.total, move.waiting, move.left) == (6, 4, 2)
    assert arguments(client) == [0, 1, 4, 5]
    for held in running:
        old.do_ack("q", held.options["redis_message_id"])
    assert old_keys(client) == set()


def test_what_a_worker_has_fetched_of_the_delayed_ones_is_moved_as_well(client, old, broker):
    send(old, 1, 2, delay=DAY)
    fetch(old, 1, worker="dead", heard_of=61, queue="q.DQ")

    [move] = move_from_redis_broker(old, broker)

    assert (move.delayed, move.left) == (2, 0)
    assert len(state(client)["delayed"]) == 2


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("calls", [0, 1, 99, 100, 101, 149])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("is_run_meanwhile", [False, True])
def test_an_interrupted_move_goes_on_without_losing_or_doubling_any(
    client, old, monkeypatch, calls, moment, is_run_meanwhile
):
    """Interrupted at the n-th message, before or after it was added; or jobs are run and dropped before it goes on."""
    broker = EchoMQBroker(client=client, middleware=[], keep_completed=0)
    send(old, *range(150))
    done, add = [], MovedJobs.add

    def interrupted(self, *args):
        if len(done) == calls and moment == "before":
            raise Interrupted
        add(self, *args)
        if len(done) == calls:
            raise Interrupted
        done.append(args)

    monkeypatch.setattr(MovedJobs, "add", interrupted)
    with pytest.raises(Interrupted):
        move_from_redis_broker(old, broker, ["q"])
    monkeypatch.setattr(MovedJobs, "add", add)
    ran = finish_all(broker) if is_run_meanwhile else []

    move_from_redis_broker(old, broker, ["q"])

    assert sorted(ran + arguments(client)) == list(range(150))
    assert ran + arguments(client) == list(range(150)) or calls < 100  # an interrupted batch goes on by age
    assert old_keys(client) == set()
    assert not client.exists("emq:q:echomq:moved")
    broker.close()


def finish_all(broker: EchoMQBroker) -> list[int]:
    consumer, messages = take(broker, broker.get_queue_message_counts("q").waiting)
    for taken in messages:
        consumer.ack(taken)
    return [taken.args[0] for taken in messages]


@pytest.mark.parametrize(("owner", "step"), [(redis.Redis, "pipeline"), (MovedJobs, "forget")])
def test_a_move_that_is_cut_off_after_it_has_added_messages_does_not_add_them_again(
    client, old, monkeypatch, owner, step
):
    broker = EchoMQBroker(client=client, middleware=[], keep_completed=0)
    send(old, *range(10))
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, interrupt)
        with pytest.raises(Interrupted):
            move_from_redis_broker(old, broker, ["q"])
    ran = finish_all(broker)

    [move] = move_from_redis_broker(old, broker, ["q"])

    assert (ran, arguments(client), move.left) == (list(range(10)), [], 0)
    assert not client.exists("emq:q:echomq:moved")
    broker.close()


def interrupt(*_, **__):
    raise Interrupted


def test_dead_letters_are_moved_once_as_well(client, old, broker, monkeypatch):
    send(old, *range(3))
    for dead in fetch(old, 3, worker="w"):
        old.do_nack("q", dead.options["redis_message_id"])
    with monkeypatch.context() as patch:
        patch.setattr(redis.Redis, "pipeline", interrupt)
        with pytest.raises(Interrupted):
            move_from_redis_broker(old, broker, ["q"])

    [move] = move_from_redis_broker(old, broker, ["q"])

    assert len(state(client)["failed"]) == 3
    assert (move.dead, move.left) == (3, 0)


def test_what_cannot_be_decoded_is_left_where_it_is_and_found_by_the_next_move(client, old, broker, caplog):
    send(old, 1, 2, 3)
    bad = client.lindex("dramatiq:q", 1).decode()
    good = client.hget("dramatiq:q.msgs", bad)
    client.hset("dramatiq:q.msgs", bad, b"\x80pickled")
    client.zadd("dramatiq:q.XQ", {"dead": 1})
    client.hset("dramatiq:q.XQ.msgs", "dead", b"\x80pickled")

    [move] = move_from_redis_broker(old, broker)

    assert (move.waiting, move.left) == (2, 2)
    assert len([line for line in lines(caplog, "WARNING") if "cannot decode" in line]) == 2
    client.hset("dramatiq:q.msgs", bad, good)
    [move] = move_from_redis_broker(old, broker)
    assert (move.waiting, move.left) == (1, 1)
    assert arguments(client) == [1, 3, 2]


def test_ids_without_a_message_are_dropped(client, old, broker):
    send(old, 1)
    client.rpush("dramatiq:q", "nothing")
    client.zadd("dramatiq:q.XQ", {"nothing": 1})

    [move] = move_from_redis_broker(old, broker, ["q"])

    assert (move.moved, move.left, old_keys(client)) == (1, 0, set())


def test_a_message_with_an_option_that_cannot_be_used_becomes_a_failed_job(client, old, broker):
    send(old, 1, max_retries="3")
    send(old, 2, max_stalled_count=0)

    move_from_redis_broker(old, broker)

    found = state(client)
    [job_id] = found["failed"]
    assert "max_retries (option of the message) is '3'" in found[job_id]["failedReason"]
    assert [json.loads(found[job_id]["opts"]) for job_id in found["wait"]] == [{"maxStalledCount": 0}]


def test_the_progress_says_how_far_it_is(old, broker):
    send(old, *range(150))
    send(old, 1, delay=DAY)
    seen = []

    move_from_redis_broker(old, broker, progress=seen.append)

    assert [(move.total, move.waiting, move.delayed) for move in seen if move.moved][:2] == [
        (151, 100, 0),
        (151, 150, 0),
    ]
    assert seen[0].moved == 0
    assert seen[-1].moved == 151
    assert next(iter_move(old, broker, "q")).total == 0


def test_all_queues_of_the_namespace_are_found(client, broker):
    old = RedisBroker(client=client, namespace="a[b]*", middleware=[])
    for queue in ("one", "two"):
        old.enqueue(message(1, queue=queue), delay=5_000 if queue == "two" else None)
    client.hset("a[b]*:three.XQ.msgs", "dead", "x")
    client.hset("axb:four.msgs", "other", "x")

    assert queues_of(old) == ["one", "three", "two"]
    assert [move.queue_name for move in move_from_redis_broker(old, broker)] == ["one", "three", "two"]
    assert broker.get_queue_message_counts("two").delayed == 1


def test_queues_are_a_list(old, broker):
    with pytest.raises(SettingError, match="queues"):
        move_from_redis_broker(old, broker, "q")
