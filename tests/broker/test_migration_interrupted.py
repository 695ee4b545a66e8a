"""A move of a RedisBroker's messages that was interrupted goes on, and moves each once."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.broker.moved_jobs import MovedJobs
from dramatiq_echomq.migration import move_from_redis_broker

from ..support.job_data import take
from ..support.old_messages import arguments, fetch, old_keys, send
from ..support.queue_data import state


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("calls", [0, 1, 99, 100, 101, 149])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("is_run_meanwhile", [False, True])
def test_an_interrupted_move_goes_on_without_losing_or_doubling_any(
    client, old_broker, monkeypatch, calls, moment, is_run_meanwhile
):
    """Interrupted at the n-th message, before or after it was added; or jobs are run and dropped before it goes on."""
    broker = EchoMQBroker(client=client, middleware=[], keep_completed=0)
    send(old_broker, *range(150))
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
        move_from_redis_broker(old_broker, broker, ["q"])
    monkeypatch.setattr(MovedJobs, "add", add)
    ran = finish_all(broker) if is_run_meanwhile else []

    move_from_redis_broker(old_broker, broker, ["q"])

    moved, in_whole_batches = ran + arguments(client), calls // 100 * 100
    assert sorted(moved) == list(range(150))
    assert moved[:in_whole_batches] == list(range(in_whole_batches))  # an interrupted batch goes on by age, in ms
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
    client, old_broker, monkeypatch, owner, step
):
    broker = EchoMQBroker(client=client, middleware=[], keep_completed=0)
    send(old_broker, *range(10))
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, interrupt)
        with pytest.raises(Interrupted):
            move_from_redis_broker(old_broker, broker, ["q"])
    ran = finish_all(broker)

    [move] = move_from_redis_broker(old_broker, broker, ["q"])

    assert (ran, arguments(client), move.left) == (list(range(10)), [], 0)
    assert not client.exists("emq:q:echomq:moved")
    broker.close()


def interrupt(*_, **__):
    raise Interrupted


def test_dead_letters_are_moved_once_as_well(client, old_broker, broker, monkeypatch):
    send(old_broker, *range(3))
    for dead in fetch(old_broker, 3, worker="w"):
        old_broker.do_nack("q", dead.options["redis_message_id"])
    with monkeypatch.context() as patch:
        patch.setattr(redis.Redis, "pipeline", interrupt)
        with pytest.raises(Interrupted):
            move_from_redis_broker(old_broker, broker, ["q"])

    [move] = move_from_redis_broker(old_broker, broker, ["q"])

    assert len(state(client)["failed"]) == 3
    assert (move.dead, move.left) == (3, 0)
