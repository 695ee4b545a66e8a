"""Dramatiq's contract: delays, an eta, priorities of actors, and asynchronous actors."""

from __future__ import annotations

import asyncio
import time

import dramatiq
import pytest
from dramatiq.middleware import AsyncIO

from ..support.brokers import working
from ..support.servers import wait_until


@pytest.fixture
def ran(full_broker):
    """When an actor ran, by its argument, in the order in which it ran."""

    @dramatiq.actor(broker=full_broker)
    def work(name):
        ran[name] = time.time() * 1000

    ran: dict[str, float] = {}
    return ran


def send(broker, name: str, **options) -> None:
    broker.get_actor("work").send_with_options(args=(name,), **options)


def test_delayed_messages_run_when_they_are_due_and_not_before(full_broker, ran):
    now = time.time() * 1000
    delays = {"c": 450, "a": 150, "now": 0, "b": 300}
    for name, delay in delays.items():
        send(full_broker, name, delay=delay)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert list(ran) == ["now", "a", "b", "c"]
    assert all(delays[name] - 2 <= ran[name] - now < delays[name] + 20_000 for name in ran)


def test_an_eta_set_by_hand_is_waited_for_and_not_seen_by_the_worker(client, full_broker, ran):
    class Options(dramatiq.Middleware):
        def before_process_message(self, broker, message):
            seen.append(dict(message.options))

        def before_delay_message(self, broker, message):
            pytest.fail("a message was delayed in memory")

    full_broker.add_middleware(Options())
    seen: list[dict] = []
    eta = int(time.time() * 1000) + 200
    send(full_broker, "later", eta=eta)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert ran["later"] >= eta
    assert seen[0].keys() == {"echomq_job_id"}


@pytest.mark.parametrize("eta", [None, "soon", -1, 0])
def test_an_odd_eta_is_no_delay(full_broker, ran, eta):
    send(full_broker, "now", eta=eta)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert list(ran) == ["now"]


def test_a_thousand_delayed_messages_are_not_held_in_memory(client, full_broker, ran):
    for number in range(1_000):
        send(full_broker, str(number), delay=60_000)
    send(full_broker, "now")

    with working(full_broker):
        wait_until(lambda: ran)
        assert full_broker.get_queue_message_counts("default").delayed == 1_000

    assert list(ran) == ["now"]


def test_messages_with_a_broker_priority_run_by_it(full_broker, ran):
    for name, priority in {"third": 7, "first": 1, "second": 2}.items():
        send(full_broker, name, broker_priority=priority)

    with working(full_broker, worker_threads=1):
        full_broker.join("default", timeout=20_000)

    assert list(ran) == ["first", "second", "third"]


def test_messages_of_one_thread_run_in_the_order_in_which_they_were_sent(full_broker, ran):
    names = [str(number) for number in range(100)]
    for name in names:
        send(full_broker, name)

    with working(full_broker, worker_threads=1):
        full_broker.join("default", timeout=20_000)

    assert list(ran) == names


def test_an_asynchronous_actor_runs(client, full_broker):
    full_broker.add_middleware(AsyncIO())

    @dramatiq.actor(broker=full_broker, max_retries=1, min_backoff=1, max_backoff=1)
    async def work(number):
        await asyncio.sleep(0.01)
        seen.append(number)
        if len(seen) == 1:
            raise RuntimeError("not yet")

    seen: list[int] = []
    work.send(7)

    with working(full_broker):
        full_broker.join("default", timeout=20_000)

    assert seen == [7, 7]
    assert (client.zcard("emq:default:completed"), client.zcard("emq:default:failed")) == (2, 0)
