"""Trouble with the locks of one queue, or of one job, does no harm to others."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import EchoMQBroker

from ..support.brokers import lines
from ..support.job_data import JOB, take
from ..support.proxy import Switch
from ..support.queue_data import put, state
from ..support.servers import Server

#: The keys that a job's renewal looks at.
KEYS = ["emq:bad:stalled", "emq:bad:active", "emq:bad:b", "emq:bad:b:lock", "emq:bad:meta"]


def shorten(client) -> None:
    for lock in ("emq:bad:b:lock", "emq:bad:c:lock", "emq:good:a:lock"):
        client.pexpire(lock, 20_000)


#: Commands that make a key of each type.
ODD = {"string": ["SET"], "list": ["RPUSH"], "hash": ["HSET", "x"], "zset": ["ZADD", "1"], "set": ["SADD"]}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_another_type_keeps_no_other_lock_from_being_renewed(client, broker, held_jobs, key, odd):
    shorten(client)
    client.delete(key)
    command, *more = ODD[odd]
    client.execute_command(command, key, *more, "x")

    broker.locks.renew()
    broker.locks.renew()

    assert client.pttl("emq:good:a:lock") > 20_000
    assert client.pttl("emq:bad:c:lock") > 20_000
    assert not held_jobs["a"].job.is_lost
    assert not held_jobs["c"].job.is_lost
    assert not broker.locks.is_failing


@pytest.mark.parametrize("odd", [key for key in KEYS if not key.endswith("lock")])
def test_a_lock_is_renewed_whatever_the_other_keys_are(client, broker, held_jobs, odd):
    shorten(client)
    client.delete(odd)
    client.set(odd, "x")

    broker.locks.renew()

    assert client.pttl("emq:bad:b:lock") > 20_000


class Trouble:
    """Renewals of one queue fail."""

    def __init__(self, broker, monkeypatch, error: Exception) -> None:
        self.error: Exception | None = error
        renew_group = broker.locks.renew_group

        def fails(queue_name, *args):
            if queue_name == "bad" and self.error is not None:
                raise self.error
            return renew_group(queue_name, *args)

        monkeypatch.setattr(broker.locks, "renew_group", fails)


@pytest.mark.parametrize("error", [redis.ResponseError("ERR odd"), redis.TimeoutError("slow"), KeyError("odd")])
def test_the_trouble_of_one_queue_is_its_own_and_told_once(client, broker, held_jobs, monkeypatch, caplog, error):
    caplog.set_level("INFO")
    trouble = Trouble(broker, monkeypatch, error)
    shorten(client)

    for _ in range(3):
        broker.locks.renew()

    assert client.pttl("emq:good:a:lock") > 20_000
    assert not broker.locks.is_cut_off
    [line] = lines(caplog)
    assert line.startswith(f"Locks of queue 'bad' cannot be renewed for now: {type(error).__name__}: ")
    assert bool(caplog.records[0].exc_info) == isinstance(error, KeyError)
    for job in broker.in_flight.all():
        job.renewed_at -= 31 if job.queue_name == "bad" else 0
    broker.locks.renew()
    assert [held_jobs[name].job.is_lost for name in "bca"] == [True, True, False]
    trouble.error = None
    caplog.clear()
    broker.locks.renew()
    assert lines(caplog) == []  # nothing of it is held any more


def test_it_is_told_when_a_queue_is_well_again(client, broker, held_jobs, monkeypatch, caplog):
    caplog.set_level("INFO")
    trouble = Trouble(broker, monkeypatch, redis.ResponseError("ERR odd"))
    broker.locks.renew()
    trouble.error = None

    broker.locks.renew()
    broker.locks.renew()

    assert lines(caplog)[1:] == ["Locks of queue 'bad' are renewed again."]


def test_locks_are_renewed_and_come_back_when_redis_is_full():
    with Server() as server, server.client() as client:
        broker = EchoMQBroker(url=server.url, middleware=[])
        put(client, wait=["b", "a"], jobs={"a": JOB, "b": JOB})
        messages = take(broker, 2)[1]
        put(client, stalled={"b"})
        client.pexpire("emq:q:a:lock", 10_000)
        client.delete("emq:q:b:lock")
        client.config_set("maxmemory", 1)

        broker.locks.renew()

        assert client.pttl("emq:q:a:lock") > 20_000
        assert client.pttl("emq:q:b:lock") > 20_000
        assert "stalled" not in state(client)
        assert not any(message.job.is_lost for message in messages)
        broker.close()


def test_what_redis_refuses_is_told_once_and_the_jobs_are_lost_when_their_locks_end(
    client, broker, held_jobs, redis_url, caplog
):
    client.execute_command("ACL", "SETUSER", "renewer", "on", ">x", "~*", "+@all", "-pexpire")
    try:
        broker.locks.clients.usual = redis.Redis.from_url(redis_url, username="renewer", password="x")

        broker.locks.renew()
        broker.locks.renew()

        [line] = lines(caplog, "WARNING")
        assert line.startswith("Locks cannot be renewed for now: QueueRefused: ")
        assert "PEXPIRE" in line
        assert not held_jobs["a"].job.is_lost
        for job in broker.in_flight.all():
            job.renewed_at -= 31
        broker.locks.renew()
        assert all(job.job.is_lost for job in held_jobs.values())
    finally:
        client.execute_command("ACL", "DELUSER", "renewer")


def test_a_job_whose_lock_came_back_while_its_end_was_on_its_way_ends_well(
    client, broker, held_jobs, monkeypatch, caplog
):
    """The call found no lock, and the renewal's thread set it again before the reply was read."""
    queue = broker.channel("good").queue
    finish = queue.finish_and_fetch

    def late(*args, **kwargs):
        monkeypatch.setattr(queue, "finish_and_fetch", finish)
        client.delete("emq:good:a:lock")
        outcome = finish(*args, **kwargs)
        broker.locks.renew()
        return outcome

    monkeypatch.setattr(queue, "finish_and_fetch", late)
    broker.consume("good").ack(held_jobs["a"])

    assert client.zcard("emq:good:completed") == 1
    assert not [line for line in lines(caplog, "WARNING") if "did not become" in line]


def test_a_master_that_became_a_replica_is_left_for_whatever_its_address_leads_to_now(caplog):
    with Server() as old, Server() as new, Switch(old.port) as switch, old.client() as direct, new.client() as target:
        broker = EchoMQBroker(port=switch.port, middleware=[])
        put(direct, wait=["a"], jobs={"a": JOB})
        take(broker)
        broker.locks.renew()
        token = direct.get("emq:q:a:lock")
        direct.replicaof("127.0.0.1", new.port)
        switch.to(new.port, drop=False)
        put(target, active=["a"], jobs={"a": JOB})
        target.set("emq:q:a:lock", token, px=20_000)

        broker.locks.renew()

        assert not [line for line in lines(caplog, "WARNING") if "read only replica" in line]
        assert target.pttl("emq:q:a:lock") > 20_000
        broker.close()
