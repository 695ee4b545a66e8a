"""Middleware that fails, or messages that cannot be read, while a stall that ends in failure is told."""

from __future__ import annotations

import pickle

import dramatiq
import pytest
import redis
from dramatiq.errors import ConnectionClosed
from dramatiq.middleware import Interrupt, Middleware, SkipMessage

from ..support.brokers import lines
from ..support.failures import HEARD, WAYS, by_sweep, check, lose_worker
from ..support.job_data import JOB, id_of, message
from ..support.queue_data import LIMIT, put, state


class Recorded(Middleware):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def after_process_message(self, broker, message, *, result=None, exception=None):
        self.heard.append("after")


class Skips(Recorded):
    def before_process_message(self, broker, message):
        raise SkipMessage("I know this one")


class Breaks(Recorded):
    def before_process_message(self, broker, message):
        raise LookupError("out of luck")


@WAYS
@pytest.mark.parametrize(("middleware", "logged"), [(Skips(), 0), (Breaks(), 1)], ids=["skips", "breaks"])
def test_a_middleware_that_did_not_see_it_begin_does_not_see_it_end(
    client, full_broker, hooks, caplog, middleware, logged, stall_out
):
    middleware.heard.clear()
    full_broker.add_middleware(middleware, before=type(full_broker.middleware[0]))
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.actors["work"].send()
    hooks.calls.clear()

    stall_out(client, full_broker, sent)

    assert (middleware.heard, hooks.names) == ([], HEARD)
    assert len([record for record in caplog.records if record.levelname == "CRITICAL"]) == logged


@WAYS
def test_an_error_in_a_hook_is_logged_as_dramatiq_does_and_the_others_hear(
    client, full_broker, hooks, caplog, stall_out
):
    """An actor that does not exist is to be told of the failure."""
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.actors["work"].send_with_options(on_failure="nobody")
    hooks.calls.clear()

    stall_out(client, full_broker, sent)

    assert hooks.names == HEARD
    [line] = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert line.startswith("Unexpected failure in after_process_message of <dramatiq.middleware.callbacks.Callbacks")
    assert list(state(client, "default")["failed"]) == [id_of(sent)]


@pytest.mark.parametrize("data", ['{"args": [1]}', "[1]", "true", '"text"', "-1", "{", ""])
def test_jobs_that_are_no_messages_are_not_told_of(client, full_broker, hooks, data, caplog):
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    put(client, "default", jobs={"odd": {"data": data}})
    lose_worker(client, "odd")
    sent = full_broker.actors["work"].send()
    lose_worker(client, id_of(sent))
    hooks.calls.clear()

    check(client, full_broker)

    assert {message.message_id for _, message, _ in hooks.calls} == {sent.message_id}
    assert lines(caplog, "WARNING", "CRITICAL") == []


def odd_option() -> bytes:
    return message(actor="work", queue="default", throws="x").encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            b'{"actor_name":',
            "the data of job 'work' is neither a Dramatiq message nor JSON: Expecting value: line 1 column 15 (char "
            "14). Send JSON, or give this program the encoder of the sender (dramatiq.set_encoder)",
        ),
        (pickle.dumps({"actor_name": "work"}), "the data of job 'work' is neither a Dramatiq message nor JSON: 'utf-"),
        (odd_option(), "its message cannot be run: throws (option of the message) is 'x', but it must be an exception"),
    ],
    ids=["cut off", "another encoder", "an odd option"],
)
def test_a_message_that_cannot_be_decoded_is_one_warning_and_the_next_is_told_of(
    client, full_broker, hooks, caplog, data, reason
):
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    put(client, "default", jobs={"odd\nid": {"name": "work", "data": data}})
    lose_worker(client, "odd\nid")
    sent = full_broker.actors["work"].send()
    lose_worker(client, id_of(sent))
    hooks.calls.clear()

    check(client, full_broker)
    check(client, full_broker)

    assert {message.message_id for _, message, _ in hooks.calls} == {sent.message_id}
    [line] = lines(caplog, "WARNING", "CRITICAL")
    assert line.startswith(
        "The failure of stalled job 'odd\\nid' of queue 'default' is told to no middleware, nor to who waits for its "
        f"result: {reason}"
    )
    assert [bool(record.exc_info) for record in caplog.records if record.getMessage() == line] == [False]


@pytest.mark.parametrize("data", ['{"user": {"actor_name": "Ann"}}', '{"actor_name": "work"}', '["\\"actor_name\\""]'])
def test_jobs_of_other_programs_whose_data_has_a_word_of_messages_are_no_fault(
    client, full_broker, hooks, data, caplog
):
    put(client, "default", jobs={"1": {"data": data}})
    lose_worker(client, "1")

    check(client, full_broker)

    assert hooks.calls == []
    assert lines(caplog, "WARNING", "CRITICAL") == []


class Away(Middleware):
    """Finds its server away for now, or is interrupted as if an actor ran."""

    def __init__(self, error: BaseException) -> None:
        self.is_away = True
        self.error = error

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if self.is_away:
            raise self.error


def test_no_callback_is_sent_again_when_redis_can_be_told_at_the_second_try(
    client, full_broker, hooks, told, monkeypatch
):
    def away(*args):
        raise redis.ConnectionError("away")

    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker, on_failure="told")
    put(client, "default", wait=["1"], jobs={"1": {**JOB, "defa": LIMIT}})
    consumer = full_broker.consume("default", timeout=1)
    with monkeypatch.context() as patch:
        patch.setattr(full_broker.channel("default"), "finish", away)
        with pytest.raises(ConnectionClosed):
            next(consumer)
    next(consumer)

    assert list(state(client, "default")["failed"]) == ["1"]
    assert len(told()) == 1
    assert [name for name in hooks.names if "nack" not in name] == [name for name in HEARD if "nack" not in name]
    assert hooks.names[-1] == HEARD[-1]


@pytest.mark.parametrize("error", [redis.ConnectionError("away"), Interrupt()], ids=["outage", "interrupt"])
def test_what_could_not_be_told_is_told_later(client, full_broker, hooks, caplog, error):
    away = Away(error)
    full_broker.add_middleware(away)
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    sent = full_broker.actors["work"].send()
    hooks.calls.clear()

    by_sweep(client, full_broker, sent)
    assert "after_nack" not in hooks.names
    assert lines(caplog, "WARNING") == [
        f"The failure of stalled job '{id_of(sent)}' of queue 'default' is told later: {type(error).__name__}"
    ]

    away.is_away = False
    hooks.calls.clear()
    client.zadd("emq:default:stalled-check:untold", {id_of(sent): 0})  # as when its lease has ended
    check(client, full_broker)
    assert hooks.names == HEARD
