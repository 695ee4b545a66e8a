"""The rights that the user of an EchoMQBroker needs: all of these, and no more."""

from __future__ import annotations

import dramatiq
import pytest
import redis
from dramatiq.errors import ConnectionClosed

from dramatiq_echomq import EchoMQBroker, QueueRefused, StalledCheckerMiddleware
from dramatiq_echomq.broker.jobs import Outcome
from dramatiq_echomq.broker.queue import Fetch

from ..support.acl import BROKER_RIGHTS, CHECKER_RIGHTS, PASSWORD, user
from ..support.brokers import lines, working
from ..support.job_data import JOB, add, id_of, take
from ..support.queue_data import put
from ..support.servers import wait_until


def work(admin, client) -> list:
    """All that a broker and its consumers can be asked for, with what came of it."""
    broker = EchoMQBroker(client=client, middleware=[], keep_failed=1, dead_message_ttl=60_000)
    outcome: list = []
    add(broker, 1), add(broker, 2, delay=60_000), add(broker, 3, delay=60_000), add(broker, 4, broker_priority=3)
    broker.pause("q")
    put(admin, wait=["strange"], jobs={"strange": JOB, "child": JOB, "parent": JOB, "run": JOB, "plan": JOB})
    broker.resume("q")
    admin.hset("emq:q:meta", mapping={"max": 100, "duration": 60_000})

    consumer, messages = take(broker, 3)
    admin.hdel("emq:q:meta", "max", "duration")
    outcome.append(admin.getdel("emq:q:limiter"))
    broker.locks.renew()
    admin.delete(f"emq:q:{id_of(messages[0])}:lock")
    broker.locks.renew()
    broker.locks.note_silence(0.0)
    consumer.requeue(messages)
    broker.locks.renew()
    outcome += [len(messages), broker.locks.is_failing]

    consumer, messages = take(broker, 3)
    consumer.ack(messages[0])
    put(admin, failed={"old": 1, "older": 0}, jobs={"old": JOB, "older": JOB})
    admin.hset(f"emq:q:{id_of(messages[1])}", "deid", "d")
    put(admin, **{"dn:d": {"name": "work", "data": "[]", "opts": '{"priority": 1}'}})
    admin.set("emq:q:de:d", id_of(messages[1]))
    put(admin, **{"parent:dependencies": {f"emq:q:{id_of(messages[1])}"}, "waiting-children": {"parent": 1}})
    flags = '{"id": "parent", "queueKey": "emq:q", "fpof": true}'
    admin.hset(f"emq:q:{id_of(messages[1])}", mapping={"parentKey": "emq:q:parent", "parent": flags})
    consumer.nack(messages[1])
    outcome += [admin.exists("emq:q:de:d"), admin.zcard("emq:q:failed"), admin.hget("emq:q:parent", "defa") is not None]
    outcome += [broker.retry("q", id_of(messages[1])), broker.retry("q", "no-such-id")]

    queue = broker.channel("q").queue
    admin.delete(f"emq:q:{id_of(messages[0])}")  # as if it were not kept, and the reply of the ack had been lost
    outcome.append(queue.finish_and_fetch([(messages[0].job.fetched, Outcome("completed", "1", ""))]).finished)
    put(admin, repeat={"s": 1_000}, jobs={"repeat:s:1000": JOB}, **{"repeat:s": {"name": "work", "every": "60000"}})
    queue.advance_scheduler(messages[2].job.fetched._replace(scheduler=b"s", job_id=b"repeat:s:1000"))
    outcome.append(admin.zscore("emq:q:repeat", "s") > 1_000)
    lost = Fetch("call", 1, lost_call="a call whose reply was lost")
    outcome.append(queue.finish_and_fetch([], lost).jobs)
    consumer.marker_wait.start(0.01)
    outcome.append(consumer.marker_wait.wait(5))
    outcome.append(broker.get_queue_message_counts("q"))
    broker.flush("q")
    broker.close()
    return [*outcome, admin.dbsize()]


def outcome(admin, client) -> list:
    admin.flushall()
    admin.script_flush()
    with client:
        return work(admin, client)


def test_a_user_with_these_rights_can_do_all_that_a_broker_does(server, admin):
    expected = outcome(admin, server.client())
    assert outcome(admin, user(server, admin, BROKER_RIGHTS)) == expected


@pytest.mark.parametrize("right", BROKER_RIGHTS.split())
def test_without_one_of_the_rights_it_cannot(server, admin, right):
    expected = outcome(admin, server.client())
    fewer = user(server, admin, " ".join(each for each in BROKER_RIGHTS.split() if each != right))
    with pytest.raises((redis.ResponseError, QueueRefused, ConnectionClosed, AssertionError, IndexError)):
        assert outcome(admin, fewer) == expected


def test_a_worker_with_a_checker_runs_as_a_user_with_the_rights_of_both(server, admin, caplog):
    broker = EchoMQBroker(client=user(server, admin, BROKER_RIGHTS + CHECKER_RIGHTS), middleware=[])
    broker.add_middleware(StalledCheckerMiddleware(stalled_interval=100))
    actor = dramatiq.actor(lambda *_: None, actor_name="work", queue_name="q", broker=broker)
    put(admin, active=["a"], jobs={"a": JOB})

    with working(broker):
        actor.send()
        actor.send_with_options(delay=50)
        wait_until(lambda: broker.get_queue_message_counts("q").completed == 3)

    assert len(lines(caplog, "WARNING", "ERROR", "CRITICAL")) == 1  # the stalled job
    assert PASSWORD not in caplog.text
    broker.close()
