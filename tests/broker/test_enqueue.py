"""What enqueueing a message leaves in Redis."""

from __future__ import annotations

import json
import threading

import pytest
import redis
from dramatiq import Message, actor

from dramatiq_echomq import EchoMQBroker, QueueRefused, SettingError

from ..support.job_data import add, added, id_of, message
from ..support.queue_data import META, NOW, WOKEN, as_data, dump, event, put, state

pytestmark = pytest.mark.usefixtures("clock")

LATER = NOW + 60_000


def came_in(job_id: str) -> list[dict]:
    return [event("added", job_id, name="work"), event("waiting", job_id)]


def test_a_message_becomes_a_job_in_wait_and_wakes_a_worker(client, broker):
    job = add(broker, 1)

    assert state(client) == as_data(
        wait=[id_of(job)],
        jobs={id_of(job): added(job)},
        marker=WOKEN,
        meta=META,
        id="1",
        events=came_in(id_of(job)),
    )


def test_a_message_takes_one_round_trip(broker, monkeypatch):
    add(broker)  # by now the server knows the script
    send, senders = redis.connection.AbstractConnection.send_packed_command, []

    def noted(connection, *args, **options):
        senders.append(threading.current_thread())
        send(connection, *args, **options)

    monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", noted)
    add(broker)

    assert senders.count(threading.current_thread()) == 1


def test_the_data_is_the_encoded_message_and_knows_its_job(broker, client):
    job = add(broker, 1)

    assert Message.decode(client.hget(f"emq:q:{id_of(job)}", "data")) == job


def test_a_message_that_is_enqueued_again_is_another_job(client, broker):
    first = add(broker, 1)
    second = broker.enqueue(first)

    assert first.message_id == second.message_id
    assert id_of(first) != id_of(second)
    assert state(client) == as_data(
        wait=[id_of(second), id_of(first)],
        jobs={id_of(first): added(first), id_of(second): added(second)},
        marker=WOKEN,
        meta=META,
        id="2",
        events=came_in(id_of(first)) + came_in(id_of(second)),
    )


def test_a_message_for_a_paused_queue_is_kept_in_paused_and_wakes_nobody(client, broker):
    put(client, meta={"paused": "1"})

    job = add(broker)

    assert state(client) == as_data(
        paused=[id_of(job)],
        jobs={id_of(job): added(job)},
        meta={**META, "paused": "1"},
        id="1",
        events=came_in(id_of(job)),
    )


def test_a_message_for_a_queue_that_is_at_its_concurrency_wakes_nobody(client, broker):
    put(client, meta={"concurrency": "1"}, active=["a"])

    add(broker)

    assert "marker" not in state(client)


@pytest.mark.parametrize("delay", [1, 60_000, 20 * 366 * 86_400_000], ids=["1 ms", "a minute", "20 years"])
def test_a_delayed_message_waits_in_delayed_and_the_marker_says_when(client, broker, delay):
    job, due = add(broker, delay=delay), NOW + delay

    assert state(client) == as_data(
        delayed={id_of(job): due * 4096},
        jobs={id_of(job): added(job, opts=json.dumps({"delay": delay}), delay=str(delay))},
        marker={"1": due},
        meta=META,
        id="1",
        events=[event("added", id_of(job), name="work"), event("delayed", id_of(job), delay=str(due))],
    )


def test_messages_that_are_due_in_the_same_ms_keep_their_order(client, broker):
    first, second, third = (id_of(add(broker, delay=60_000)) for _ in range(3))

    delayed = {first: LATER * 4096, second: LATER * 4096 + 1, third: LATER * 4096 + 2}
    assert state(client)["delayed"] == delayed


def test_the_marker_says_when_the_first_of_the_delayed_is_due(client, broker):
    add(broker, delay=60_000)
    add(broker, delay=5_000)
    add(broker, delay=90_000)

    assert state(client)["marker"] == {"1": NOW + 5_000}


@pytest.mark.parametrize("eta", [LATER, float(LATER)])
def test_an_eta_set_by_hand_is_a_delay(client, broker, eta):
    job = add(broker, eta=eta)

    found = state(client)
    assert found["delayed"] == {id_of(job): LATER * 4096}
    assert "eta" not in json.loads(found[id_of(job)]["data"])["options"]


@pytest.mark.parametrize("eta", [NOW, NOW - 1, 0, None, "soon", True, [LATER]], ids=str)
def test_an_eta_that_is_over_or_none_is_no_delay(client, broker, eta):
    job = add(broker, eta=eta)

    found = state(client)
    assert found["wait"] == [id_of(job)]
    assert "eta" not in json.loads(found[id_of(job)]["data"])["options"]


@pytest.mark.parametrize("delay", [0, -5])
def test_a_delay_that_is_over_is_none_whatever_the_eta(client, broker, delay):
    job = add(broker, delay=delay, eta=LATER)

    assert state(client)["wait"] == [id_of(job)]


@pytest.mark.parametrize("queue", ["q.DQ", "q.XQ"])
def test_a_queue_of_dramatiqs_for_delays_or_the_dead_stands_for_its_queue(client, broker, queue):
    job = broker.enqueue(message(queue=queue), delay=60_000)

    assert job.queue_name == "q"
    assert {name.split(b":")[1] for name in client.scan_iter()} == {b"q"}


def test_a_priority_puts_a_message_into_prioritized_in_the_order_of_arrival(client, broker):
    low, high, low_too = (add(broker, broker_priority=priority) for priority in (2, 1, 2))

    found = state(client)
    assert found["prioritized"] == {id_of(high): 2**32 + 2, id_of(low): 2 * 2**32 + 1, id_of(low_too): 2 * 2**32 + 3}
    assert "wait" not in found
    assert found["marker"] == WOKEN
    assert found["pc"] == "3"
    assert found[id_of(low)] == added(low, opts='{"priority": 2}', priority="2")
    assert found["events"] == came_in(id_of(low)) + came_in(id_of(high)) + came_in(id_of(low_too))


def test_a_delayed_message_with_a_priority_waits_in_delayed_first(client, broker):
    job = add(broker, delay=60_000, broker_priority=3)

    found = state(client)
    assert found["delayed"] == {id_of(job): LATER * 4096}
    opts = json.dumps({"priority": 3, "delay": 60_000})
    assert found[id_of(job)] == added(job, opts=opts, delay="60000", priority="3")
    assert "prioritized" not in found


@pytest.mark.parametrize("broker_settings", [{"keep_completed": 5, "keep_failed": 7, "dead_message_ttl": 60_000}])
def test_settings_of_the_broker_are_in_the_opts_for_those_that_do_not_know_them(client, broker_settings):
    broker = EchoMQBroker(client=client, middleware=[], **broker_settings)

    job = add(broker)

    opts = {"removeOnComplete": 5, "removeOnFail": {"count": 7, "age": 60}}
    assert json.loads(state(client)[id_of(job)]["opts"]) == opts


def test_a_version_that_another_runtime_set_is_kept(client, broker):
    put(client, meta={"version": "bullmq:5.1.0"})

    add(broker)

    assert state(client)["meta"] == {"version": "bullmq:5.1.0"}


@pytest.mark.parametrize(
    "queue",
    [{"meta": {"version": "echomq:2.0"}}, {"active": {"a": 1}}, {"wait": "text"}, {"id": ["1"]}],
    ids=["EchoMQ 2", "active of the wrong type", "wait of the wrong type", "id of the wrong type"],
)
def test_an_unfit_queue_refuses_the_message_and_stays_as_it_was(client, broker, queue):
    put(client, **queue)
    before = dump(client)

    with pytest.raises(QueueRefused):
        add(broker)

    assert dump(client) == before


@pytest.mark.parametrize("options", [{"max_stalled_count": -1}, {"broker_priority": "high"}, {"lock_duration": 0}])
def test_an_option_that_cannot_be_used_is_refused_before_anything_is_written(client, broker, options):
    with pytest.raises(SettingError, match=next(iter(options))):
        add(broker, **options)

    assert client.keys() == []


def test_a_message_that_cannot_be_encoded_is_refused_before_anything_is_written(client, broker):
    with pytest.raises(Exception, match="not JSON serializable"):
        add(broker, object())

    assert client.keys() == []


def test_the_events_are_trimmed_to_what_the_meta_says(client, broker):
    put(client, meta={"opts.maxLenEvents": "100"})

    for _ in range(300):
        add(broker)

    assert 100 <= client.xlen("emq:q:events") < 350


def test_an_actor_sends_through_the_broker(client, broker):
    @actor(broker=broker, queue_name="q")
    def work(x):
        pass

    job = work.send_with_options(args=(1,), delay=60_000)

    assert state(client)["delayed"] == {id_of(job): LATER * 4096}
    assert broker.get_declared_queues() == {"q"}
