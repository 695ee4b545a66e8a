"""Many messages in few calls: as if each had been enqueued by itself."""

from __future__ import annotations

import dramatiq
import pytest
import redis
from dramatiq.middleware import MiddlewareError
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import EchoMQBroker, MessagesNotAdded, SettingError

from ..support.faults import Faults
from ..support.job_data import add, id_of, message, take
from ..support.proxy import LossyProxy
from ..support.queue_data import put, state

pytestmark = pytest.mark.usefixtures("clock")


class Signals(dramatiq.Middleware):
    def __init__(self) -> None:
        self.told: list[tuple] = []

    def before_enqueue(self, broker, message, delay):
        self.told.append(("before", message.args, delay))

    def after_enqueue(self, broker, message, delay):
        self.told.append(("after", message.args, delay))


MESSAGES = [
    message(1),
    (message(2), 5_000),
    message(3, queue="other"),
    message(4, broker_priority=3),
    message(5, broker_priority="first"),
    (message(6), 0),
    message(7, lock_duration=9_000, max_stalled_count=0),
    message(8, eta=1_900_000_000_000),
]


def without_ids(found: dict, ids: list[str]) -> dict:
    """A state with numbers in the place of the ids."""
    text = repr({name: found[name] for name in sorted(found)})
    for number, job_id in enumerate(ids):
        text = text.replace(job_id, f"job {number}")
    return sorted(text)


def enqueue_each(broker: EchoMQBroker) -> list:
    pairs = [entry if isinstance(entry, tuple) else (entry, None) for entry in MESSAGES]
    return [broker.enqueue(message, delay=delay) for message, delay in pairs]


@pytest.mark.parametrize("queue", ["q", "other"])
def test_many_leave_what_each_by_itself_does(client, broker, queue):
    broker.add_middleware(Signals())
    copies = enqueue_each(broker)
    expected = without_ids(state(client, queue), [id_of(copy) for copy in copies])
    client.flushdb()

    many = broker.enqueue_many(MESSAGES)

    assert [(copy.message_id, copy.args, copy.options.keys()) for copy in many] == [
        (copy.message_id, copy.args, copy.options.keys()) for copy in copies
    ]
    assert without_ids(state(client, queue), [id_of(copy) for copy in many]) == expected


def test_the_same_signals_are_sent_for_each(broker):
    signals = Signals()
    broker.add_middleware(signals)

    broker.enqueue_many(MESSAGES)

    for when in ("before", "after"):
        told = {args: delay for told_when, args, delay in signals.told if told_when == when}
        assert told == {(number,): {2: 5_000, 6: 0}.get(number) for number in range(1, 9)}


def test_any_number_goes_in_few_calls_and_keeps_its_order(client, broker):
    client.config_resetstat()

    copies = broker.enqueue_many(message(number) for number in range(1_234))

    assert [job_id.decode() for job_id in client.lrange("emq:q:wait", 0, -1)] == [id_of(copy) for copy in copies][::-1]
    stats = client.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] + stats.get("cmdstat_eval", {"calls": 0})["calls"] < 12
    assert client.get("emq:q:id") == b"1234"


def test_large_messages_go_in_bounded_calls(client, broker, monkeypatch):
    sizes = []
    add_jobs = broker.channel("q").queue.add
    monkeypatch.setattr(broker.channel("q").queue, "add", lambda jobs: sizes.append(len(jobs)) or add_jobs(jobs))

    broker.enqueue_many(message("x" * 400_000) for _ in range(7))

    assert sizes == [3, 3, 1]


def test_none_at_all_asks_nothing_of_redis(broker, monkeypatch):
    monkeypatch.setattr(broker.connections.commands, "execute_command", lambda *_, **__: pytest.fail("Redis was asked"))

    assert broker.enqueue_many([]) == []


@pytest.mark.parametrize("has_run", [True, False])
def test_the_error_says_which_were_added(client, broker, monkeypatch, has_run):
    add(broker, queue="other"), add(broker)
    client.delete("emq:q:wait")
    faults = Faults(monkeypatch)
    sent = [message(number) for number in range(500)]
    add_jobs = broker.channel("q").queue.add
    calls = []

    def fails_the_second_time(jobs):
        calls.append(jobs)
        if len(calls) == 2:
            faults.plan("addJobs-1.lua", redis.TimeoutError("lost"), has_run=has_run)
        add_jobs(jobs)

    monkeypatch.setattr(broker.channel("q").queue, "add", fails_the_second_time)

    with pytest.raises(MessagesNotAdded, match="200 messages were enqueued") as raised:
        broker.enqueue_many(sent)

    assert isinstance(raised.value.__cause__, redis.TimeoutError)
    assert [each.args[0] for each in raised.value.added] == [*range(200)]
    assert [each.args[0] for each in raised.value.uncertain] == [*range(200, 400)]
    assert client.llen("emq:q:wait") == (400 if has_run else 200)


def test_a_message_that_cannot_be_used_is_the_cause(client, broker):
    with pytest.raises(MessagesNotAdded) as raised:
        broker.enqueue_many([message(1), message(2, max_stalled_count="x")])

    assert str(raised.value) == (
        f"0 messages were enqueued (see .added), then there was an error: SettingError: {raised.value.__cause__}"
    )
    assert isinstance(raised.value.__cause__, SettingError)
    assert (raised.value.added, raised.value.uncertain) == ([], [])
    assert "wait" not in state(client)


class Refuses(dramatiq.Middleware):
    def before_enqueue(self, broker, message, delay):
        if message.args == (200,):
            raise MiddlewareError("not this one")


def numbers_until(error: Exception):
    yield from (message(number) for number in range(200))
    raise error


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        (lambda: (message(number) for number in range(500)), MiddlewareError),
        (lambda: numbers_until(LookupError("no more of them")), LookupError),
        (lambda: [*map(message, range(200)), (message(201), "soon")], ValueError),
    ],
    ids=["middleware", "an iterator that fails", "a delay that is no number"],
)
def test_whatever_keeps_the_others_from_being_added_is_the_cause(client, broker, messages, cause):
    broker.add_middleware(Refuses())

    with pytest.raises(MessagesNotAdded, match=r"^200 messages were enqueued .see .added., then.*: \w+: ") as raised:
        broker.enqueue_many(messages())

    assert isinstance(raised.value.__cause__, cause)
    assert [each.args[0] for each in raised.value.added] == [*range(200)]
    assert (raised.value.uncertain, client.llen("emq:q:wait")) == ([], 200)


def test_a_queue_that_is_unfit_takes_none_of_them(client, broker):
    put(client, wait="text")

    with pytest.raises(
        MessagesNotAdded, match=r"0 messages.* with 2 more .* refuses the queue: emq:q:wait is a string"
    ) as raised:
        broker.enqueue_many([message(1), message(2)])

    assert str(raised.value.__cause__) in str(raised.value)
    assert client.keys("emq:q:*-*") == []


def test_a_call_whose_reply_is_lost_adds_nothing_twice(client):
    add(EchoMQBroker(client=client, middleware=[]), queue="other")  # the server knows the script
    with LossyProxy(client.connection_pool.connection_kwargs["port"]) as proxy:
        broker = EchoMQBroker(client=redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 1)), middleware=[])
        broker.enqueue_many([message(0)])
        proxy.lose(b"EVALSHA")

        broker.enqueue_many(message(number) for number in range(1, 100))

        assert proxy.lost == [b"EVALSHA"]
        broker.close()
    _, messages = take(EchoMQBroker(client=client, middleware=[]), 200)
    assert [each.args[0] for each in messages] == [*range(100)]
