"""What the delay of a message may be: what Dramatiq and its middleware give is taken, all else is refused by name."""

from __future__ import annotations

import datetime
import decimal
import math

import dramatiq
import pytest
from dramatiq.middleware import Pipelines

from dramatiq_echomq import MessagesNotAdded, SettingError

from ..support.queue_data import state


@pytest.fixture
def work(broker):
    return dramatiq.actor(lambda *_: None, actor_name="work", broker=broker, queue_name="q")


@pytest.mark.parametrize(
    ("delay", "ms"),
    [
        (5_000, 5_000),
        (5_000.9, 5_000),
        (decimal.Decimal(5_000), 5_000),
        (datetime.timedelta(seconds=5), 5_000),
        *((none, 0) for none in (None, 0, 0.5, -5, -5.5, False, "", datetime.timedelta())),
    ],
    ids=str,
)
def test_a_delay_is_a_number_of_ms_and_what_is_none_is_none(client, work, delay, ms):
    job_id = work.send_with_options(delay=delay).options["echomq_job_id"]
    assert client.hget(f"emq:q:{job_id}", "delay") == str(ms).encode()
    assert (job_id in state(client).get("delayed", {})) is (ms > 0)


BAD = ["5", "x", "5 s", True, math.nan, math.inf, -math.inf, 1j, b"5", [5], {"ms": 5}, datetime.time(0, 5)]


@pytest.mark.parametrize("delay", BAD, ids=repr)
@pytest.mark.parametrize("way", ["send", "enqueue_many"])
def test_another_delay_is_refused_and_nothing_is_written(client, broker, work, delay, way):
    message = work.message()
    send = {
        "send": lambda: broker.enqueue(message, delay=delay),
        "enqueue_many": lambda: broker.enqueue_many([work.message(), (message, delay)]),
    }
    with pytest.raises((SettingError, MessagesNotAdded)) as caught:
        send[way]()
    error = caught.value if way == "send" else caught.value.__cause__
    assert isinstance(error, SettingError)
    assert str(error) == (
        f"delay (given with message {message.message_id!r} of actor 'work') is {delay!r}, but it must be "
        "a number of ms, or with send_with_options a timedelta"
        + ("; this is a text, write 5 without quotes" if delay == "5" else "")
    )
    assert client.keys() == []


def test_a_pipeline_whose_next_message_has_a_bad_delay_is_refused_when_it_is_sent(client, broker, work):
    """Else it would end in silence: Dramatiq's middleware enqueues the next message when the first has run."""
    broker.add_middleware(Pipelines())
    for bad in (True, "5"):
        with pytest.raises(SettingError, match=r"^delay \(option of the pipe_target"):
            dramatiq.pipeline([work.message(), work.message_with_options(delay=bad)], broker=broker).run()
    assert client.keys() == []
