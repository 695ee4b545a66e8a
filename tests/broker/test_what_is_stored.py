"""What a job keeps of a result or an exception, whatever these are, and which actor a job is for."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.middleware import Retries, TimeLimitExceeded

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import lines, working
from ..support.job_data import add, id_of, message, take
from ..support.queue_data import put, state


class Breaks(dict):
    """A result that raises something of its own when it is encoded."""

    def items(self):
        raise KeyError("broken")


class Unreadable(Exception):
    def __str__(self) -> str:
        raise KeyError("broken")


class Untraceable(Exception):
    @property
    def __cause__(self):
        raise KeyError("broken")


def ran(broker: EchoMQBroker, client, outcome: object) -> dict[str, str]:
    """The job of an actor that returned or raised this."""

    @dramatiq.actor(broker=broker, queue_name="q")
    def work():
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    job = add(broker)
    with working(broker):
        broker.join("q", timeout=20_000)
    return state(client)[id_of(job)]


@pytest.fixture
def retrying(client):
    broker = EchoMQBroker(client=client, middleware=[Retries(max_retries=0)])
    yield broker
    broker.close()


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (Breaks(a=1), "null"),
        ({1, 2}, "null"),
        (float("nan"), "null"),
        (10**5000, "null"),
        ("\ud800", '"\\ud800"'),
    ],
    ids=["plain", "raises", "a set", "not a number", "a long number", "a lone surrogate"],
)
def test_a_result_that_cannot_be_encoded_is_stored_as_null(client, broker, result, stored):
    job = ran(broker, client, result)

    assert job["returnvalue"] == stored


@pytest.mark.parametrize(
    ("exception", "reason"),
    [
        (RuntimeError("it broke"), "RuntimeError: it broke"),
        (RuntimeError(), "RuntimeError"),
        (TimeLimitExceeded(), "TimeLimitExceeded"),
        (Unreadable(), "Unreadable: (what it says cannot be shown)"),
        (ValueError("\ud800"), "ValueError: ?"),
    ],
    ids=["a text", "nothing", "an interrupt", "raises", "a lone surrogate"],
)
def test_the_reason_is_the_type_and_what_the_exception_says(client, retrying, exception, reason):
    job = ran(retrying, client, exception)

    assert job["failedReason"] == reason


def test_an_exception_without_a_trace_that_can_be_shown_fails_its_job_all_the_same(client, broker):
    put(client, wait=["a"], jobs={"a": {}})
    consumer, [taken] = take(broker)
    try:
        raise Untraceable("it broke")
    except Untraceable as exception:
        taken.stuff_exception(exception)

    consumer.nack(taken)

    job = state(client)["a"]
    assert (job["failedReason"], "stacktrace" in job) == ("Untraceable: it broke", False)


def test_the_name_of_a_job_is_its_actor_whatever_its_data_says(client, broker):
    """As when a dashboard duplicates a job under another name."""
    ran_by = []

    @dramatiq.actor(broker=broker, queue_name="q")
    def old(x):
        ran_by.append(("old", x))

    @dramatiq.actor(broker=broker, queue_name="q")
    def new(x):
        ran_by.append(("new", x))

    data = message(1, actor="old").encode()
    put(client, wait=["copy", "first"], jobs={"copy": {"name": "new", "data": data}})
    put(client, jobs={"first": {"name": "old", "data": data}})

    with working(broker):
        broker.join("q", timeout=20_000)

    assert ran_by == [("old", 1), ("new", 1)]
    assert set(state(client)["completed"]) == {"copy", "first"}


@pytest.mark.parametrize("name", ["x" * 1_000_000, "two\nlines", "\x1b[31mred"], ids=["long", "lines", "escapes"])
@pytest.mark.parametrize("data", ["1", "{", "a message"])
def test_a_name_that_is_no_name_is_shown_on_one_line_and_cut(client, broker, caplog, name, data):
    data = message(actor=name).encode() if data == "a message" else data
    put(client, wait=["bad"], jobs={"bad": {"name": name, "data": data}})

    broker.declare_queue("q")
    with working(broker):
        broker.join("q", timeout=20_000)

    reason = state(client)["bad"]["failedReason"]
    assert len(reason) < 1_000
    assert reason.isprintable()
    assert all(len(line) < 1_000 and line.isprintable() for line in lines(caplog))
    assert len(caplog.text) < 20_000
    assert "\x1b" not in caplog.text
    assert "two\nlines" not in caplog.text
