"""What the broker does besides enqueueing and consuming."""

from __future__ import annotations

import threading
import time

import dramatiq
import pytest
import redis
from dramatiq.errors import QueueJoinTimeout
from redis.backoff import NoBackoff
from redis.retry import Retry

from dramatiq_echomq import EchoMQBroker, QueueCounts, QueueRefused, SettingError, StalledChecker

from ..support.job_data import META, WOKEN, add, id_of, take
from ..support.queue_data import NOW, as_data, dump, event, put, state
from ..support.servers import Server, free_port, wait_until

JOB = {"name": "work", "data": "[]"}
EVERYWHERE = {
    "wait": ["w"],
    "paused": ["p"],
    "active": ["a"],
    "delayed": {"d": 4096},
    "prioritized": {"h": 2**32},
    "completed": {"c": 1},
    "failed": {"f": 2},
    "waiting_children": {"k": 3},
}
JOBS = dict.fromkeys("wpadhcfk", JOB)
OTHER_KEYS = {
    "stalled": {"a"},
    "marker": WOKEN,
    "pc": "4",
    "id": "9",
    "stalled_check": "1",
    "w:logs": ["a line"],
    "k:dependencies": {"emq:q:w"},
    "k:processed": {"emq:q:c": "1"},
    "de:x": "w",
}


def put_everything(client, queue: str = "q") -> None:
    put(client, queue, jobs={**JOBS, "w": {**JOB, "deid": "x"}}, locks=["a"], meta=META, **EVERYWHERE, **OTHER_KEYS)
    client.xadd(f"emq:{queue}:events", event("added", "w"))


def test_flush_removes_every_job_and_leaves_the_meta(client, broker):
    put_everything(client)
    put_everything(client, "other")
    before = state(client, "other")

    broker.flush("q")

    assert state(client) == as_data(meta=META)
    assert state(client, "other") == before


def test_flush_keeps_a_queue_paused(client, broker):
    put(client, paused=["p"], jobs={"p": JOB}, meta={"paused": "1"})

    broker.flush("q")

    assert state(client) == as_data(meta={"paused": "1"})


def test_flush_removes_more_than_one_call_does(client, broker):
    put(client, wait=[str(at) for at in range(2_500)], completed={f"c{at}": at for at in range(1_200)})

    broker.flush("q")

    assert client.keys() == []


def test_flush_all_flushes_the_declared_queues(client, broker):
    for queue in ("q", "other", "undeclared"):
        put_everything(client, queue)
    broker.declare_queue("q")
    broker.declare_queue("other")

    broker.flush_all()

    assert (state(client), state(client, "other")) == (as_data(meta=META), as_data(meta=META))
    assert len(state(client, "undeclared")) > 2


def test_flush_of_an_unfit_queue_is_refused(client, broker):
    put(client, meta={"version": "echomq:2"}, wait=["a"])
    before = dump(client)

    with pytest.raises(QueueRefused):
        broker.flush("q")

    assert dump(client) == before


@pytest.mark.parametrize("kind", ["wait", "paused", "active", "delayed", "prioritized"])
def test_join_waits_for_jobs_that_are_in(client, broker, kind):
    put(client, jobs=JOBS, **{kind: EVERYWHERE[kind]})

    with pytest.raises(QueueJoinTimeout):
        EchoMQBroker(client=client, middleware=[]).join("q", timeout=0, interval=1)


@pytest.mark.parametrize("kinds", [[], ["completed", "failed"], ["waiting_children"]], ids=str)
def test_join_returns_when_nothing_is_left_but(client, broker, kinds):
    put(client, jobs=JOBS, **{kind: EVERYWHERE[kind] for kind in kinds})

    broker.join("q", timeout=0)


def test_join_returns_when_the_last_job_is_done(client, broker):
    add(broker)
    consumer, [message] = take(broker)
    threading.Timer(0.1, consumer.ack, [message]).start()

    broker.join("q", timeout=10_000, interval=10)

    assert client.zcard("emq:q:completed") == 1


def test_join_gives_up_after_its_timeout(broker):
    add(broker)
    started = time.monotonic()

    with pytest.raises(QueueJoinTimeout):
        broker.join("q", timeout=100, interval=10)

    assert 0.1 <= time.monotonic() - started < 2


def test_the_counts_tell_how_many_jobs_are_in_each_state(client, broker):
    names = ["wait", "active", "delayed", "prioritized", "paused", "completed", "failed"]
    for count, name in enumerate(names, start=1):
        ids = [f"{name}{at}" for at in range(count)]
        put(client, **{name: ids if isinstance(EVERYWHERE[name], list) else dict.fromkeys(ids, 1)})

    assert broker.get_queue_message_counts("q") == QueueCounts(
        waiting=1, active=2, delayed=3, prioritized=4, paused=5, completed=6, failed=7
    )
    assert broker.get_queue_message_counts("q.DQ") == broker.get_queue_message_counts("q")


@pytest.mark.parametrize(
    ("wait", "paused"), [(["b", "a"], []), ([], ["b", "a"]), (["b"], ["a"])], ids=["wait", "paused", "both"]
)
def test_pause_moves_what_waits_to_paused(client, broker, wait, paused):
    put(client, **({"wait": wait} if wait else {}), **({"paused": paused} if paused else {}), marker=WOKEN)

    broker.pause("q")

    both = ["a", "b"] if wait and paused else ["b", "a"]
    assert state(client) == as_data(paused=both, meta={"paused": "1"}, events=[{"event": "paused"}])


@pytest.mark.parametrize(
    ("wait", "paused", "merged"),
    [
        (["b", "a"], [], ["b", "a"]),
        ([], ["b", "a"], ["b", "a"]),
        (["d", "c"], ["b", "a"], ["d", "c", "b", "a"]),
    ],
    ids=["wait", "paused", "both"],
)
def test_resume_makes_one_list_of_both_and_wakes_a_worker(client, broker, wait, paused, merged):
    """Those in paused were there before."""
    put(client, **({"wait": wait} if wait else {}), **({"paused": paused} if paused else {}), meta={"paused": "1"})

    broker.resume("q")

    assert state(client) == as_data(wait=merged, marker=WOKEN, events=[{"event": "resumed"}])


def test_resume_makes_one_list_of_two_long_ones(client, broker):
    """As many ids as Lua cannot hold in one call."""
    wait, paused = ([f"{which}{number}" for number in range(9_500)] for which in "wp")
    put(client, wait=wait, paused=paused, meta={"paused": "1"})

    broker.resume("q")

    assert state(client)["wait"] == wait + paused


def test_resume_says_when_the_next_delayed_job_is_due(client, broker):
    put(client, delayed={"d": NOW * 4096 + 7}, meta={"paused": "1"})

    broker.resume("q")

    assert state(client)["marker"] == {"1": NOW}


def test_a_paused_queue_gives_nothing_until_it_is_resumed(client, broker):
    first, second = add(broker), add(broker)
    broker.pause("q")
    third = add(broker)
    assert take(broker, 3)[1] == []

    broker.resume("q")

    assert [id_of(message) for message in take(broker, 3)[1]] == [id_of(first), id_of(second), id_of(third)]


FAILED = {
    **JOB,
    "atm": "2",
    "ats": "3",
    "stc": "2",
    "defa": "x",
    "failedReason": "r",
    "stacktrace": "[]",
    "finishedOn": "5",
}
RETRIED = {**JOB, "ats": "3"}


@pytest.mark.parametrize("job_id", ["f", b"f"])
@pytest.mark.parametrize(
    ("job", "queue", "expected"),
    [
        ({}, {}, {"wait": ["f"], "marker": WOKEN}),
        ({}, {"wait": ["w"]}, {"wait": ["f", "w"], "marker": WOKEN}),
        ({}, {"meta": {"paused": "1"}}, {"paused": ["f"], "meta": {"paused": "1"}}),
        ({"priority": "2"}, {}, {"prioritized": {"f": 2 * 2**32 + 1}, "pc": "1", "marker": WOKEN}),
        ({}, {"meta": {"concurrency": "0"}}, {"wait": ["f"], "meta": {"concurrency": "0"}}),
    ],
    ids=["empty", "waiting", "paused", "priority", "at its concurrency"],
)
def test_retry_gives_a_failed_job_another_life(client, broker, job, queue, expected, job_id):
    put(client, failed={"f": 5, "g": 6}, jobs={"f": {**FAILED, **job}}, **queue)

    assert broker.retry("q", job_id) is True

    assert state(client) == as_data(
        failed={"g": 6}, jobs={"f": {**RETRIED, **job}}, events=[event("waiting", "f", prev="failed")], **expected
    )


def test_a_retried_job_that_had_no_attempts_left_survives_its_first_stall(client, broker):
    put(client, failed={"f": 5}, jobs={"f": {**FAILED, "opts": '{"attempts": 2}'}})
    broker.retry("q", "f")
    take(broker)
    client.delete("emq:q:f:lock")

    checker = StalledChecker(client)

    assert (checker.check("q").marked, checker.check("q").recovered_ids) == (1, ("f",))


@pytest.mark.parametrize(
    "queue",
    [{}, {"jobs": {"f": JOB}, "completed": {"f": 5}}, {"jobs": {"f": JOB}, "wait": ["f"]}],
    ids=["unknown", "completed", "waiting"],
)
def test_retry_of_a_job_that_has_not_failed_changes_nothing(client, broker, queue):
    put(client, **queue)
    before = state(client)

    assert broker.retry("q", "f") is False

    assert state(client) == before


def test_declared_queues_are_a_copy(broker):
    broker.declare_queue("q")

    broker.get_declared_queues().add("other")

    assert broker.get_declared_queues() == {"q"}
    assert broker.get_declared_delay_queues() == set()


def test_a_queue_is_declared_once(broker):
    class Declared(dramatiq.Middleware):
        queues: list[str] = []  # noqa: RUF012

        def after_declare_queue(self, broker, queue_name):
            self.queues.append(queue_name)

    broker.add_middleware(Declared())
    for queue in ("q", "q", "other"):
        broker.declare_queue(queue)

    assert Declared.queues == ["q", "other"]


def test_neither_the_constructor_nor_declarations_nor_consumers_connect():
    """Nobody listens on this port."""
    broker = EchoMQBroker(port=free_port(), retry=Retry(NoBackoff(), 0))

    broker.declare_queue("q")
    dramatiq.actor(broker=broker, queue_name="q")(lambda: None)
    consumer = broker.consume("q")
    consumer.close()
    broker.close()

    with pytest.raises(redis.ConnectionError):
        add(broker)


def test_the_namespace_is_the_prefix(client):
    broker = EchoMQBroker(client=client, prefix="mine", middleware=[])

    job = add(broker)

    assert (broker.namespace, broker.client) == ("mine", client)
    assert state(client, prefix="mine")["wait"] == [id_of(job)]
    assert all(name.startswith(b"mine:q:") for name in client.scan_iter())


@pytest.mark.parametrize("decode", [False, True])
def test_clients_with_decoded_responses_do_the_same(client, decode):
    broker = EchoMQBroker(client=redis.Redis.from_url(url_of(client), decode_responses=decode), middleware=[])
    first, second = add(broker, 1), add(broker, "ü", broker_priority=1)

    consumer, messages = take(broker, 3)
    assert [(id_of(message), message.args) for message in messages] == [(id_of(first), (1,)), (id_of(second), ("ü",))]
    consumer.ack(messages[0])
    consumer.nack(messages[1])
    assert broker.retry("q", id_of(second))
    consumer.requeue(take(broker, 2)[1])

    assert broker.get_queue_message_counts("q") == QueueCounts(0, 0, 0, 1, 0, 1, 0)
    broker.locks.renew()
    broker.flush("q")
    assert list(client.scan_iter()) == [b"emq:q:meta"]
    broker.close()
    broker.client.close()


def url_of(client) -> str:
    parameters = client.connection_pool.connection_kwargs
    return f"redis://{parameters['host']}:{parameters['port']}/{parameters['db']}"


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"lock_duration": 0}, "lock_duration"),
        ({"lock_duration": "30"}, "lock_duration"),
        ({"keep_completed": -1}, "keep_completed"),
        ({"keep_failed": 1.5}, "keep_failed"),
        ({"dead_message_ttl": 0}, "dead_message_ttl"),
        ({"prefix": "emq:"}, "prefix"),
        ({"url": "http://example.com"}, "url"),
        ({"client": object()}, "client"),
        ({"client": redis.Redis(), "url": "redis://localhost"}, "client"),
        ({"client": redis.Redis(), "password": "s3cret"}, "password"),
        ({"url": "redis://localhost", "namespace": "mine"}, "namespace"),
        ({"url": "redis://localhost", "requeue_interval": 5}, "requeue_interval"),
        ({"client": redis.Redis(), "max_stalled_count": 2}, "max_stalled_count"),
        ({"url": "redis://localhost", "host": "elsewhere"}, "host"),
        ({"url": "unix:///tmp/s", "port": 1}, "port"),
        ({"url": "redis://localhost/1", "db": 2}, "db"),
        ({"url": "redis://:s3cret@localhost", "password": "other"}, "password"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(parameters, name):
    with pytest.raises(SettingError, match=rf"^{name} ") as caught:
        EchoMQBroker(**parameters)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("lock_durations", "lock_duration"), ("sokcet_timeout", "socket_timeout"), ("clinet", "client"), ("x", "url")],
)
@pytest.mark.parametrize("address", [{"url": "redis://localhost"}, {"host": "localhost"}])
def test_a_parameter_that_there_is_not_is_named_with_the_one_that_was_meant(address, name, meant):
    with pytest.raises(SettingError, match=rf"^'{name}' \(keyword argument\) is not known here; .*\b{meant}\b"):
        EchoMQBroker(**address, **{name: 5})


def test_what_a_url_does_not_say_may_stand_beside_it():
    broker = EchoMQBroker(url="redis://localhost", db=3, socket_timeout=2)

    assert broker.client.connection_pool.connection_kwargs["db"] == 3


@pytest.mark.parametrize("option", ["max_stalled_count", "lock_duration", "broker_priority"])
@pytest.mark.parametrize("value", [-1, "1", 1.5, True, 2**53])
def test_an_option_of_an_actor_that_cannot_be_used_is_refused_with_its_name(broker, option, value):
    with pytest.raises(SettingError, match=rf"{option} \(option of actor 'work'\)"):

        @dramatiq.actor(broker=broker, **{option: value})
        def work():
            pass

    assert broker.get_declared_actors() == set()


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cret@localhost:bad/0",
        "redis://:s3cret/word@localhost/0",
        "redis://user:s3cret@localhost/0?socket_timeout=soon",
        "amqp://user:s3cret@localhost",
    ],
)
def test_a_password_is_never_shown(url):
    with pytest.raises(SettingError) as caught:
        EchoMQBroker(url=url)

    error: BaseException | None = caught.value
    assert "s3cret" not in str(error)
    assert error.__suppress_context__


def test_an_error_of_a_connection_does_not_show_the_password():
    broker = EchoMQBroker(url=f"redis://user:s3cret@127.0.0.1:{free_port()}/0", middleware=[])

    with pytest.raises(redis.ConnectionError) as caught:
        add(broker)

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(broker)


def connections(client) -> set[str]:
    return {connection["id"] for connection in client.client_list()}


def test_jobs_are_counted_by_a_redis_that_is_out_of_memory():
    with Server() as server, server.client() as client:
        broker = EchoMQBroker(client=client, middleware=[])
        add(broker)
        client.config_set("maxmemory", 1)

        assert broker.get_queue_message_counts("q").waiting == 1


def test_close_closes_what_the_broker_opened_and_may_be_called_twice(client, broker):
    add(broker)
    before = connections(client)
    consumer, [message] = take(broker)
    broker.emit_before("process_message", message)
    broker.locks.renew()
    opened = connections(client) - before
    assert len(opened) == 2

    broker.close()
    broker.close()

    wait_until(lambda: not opened & connections(client))
    consumer.ack(message)
