"""A failure of a stalled job is told at least once, by whoever looks at the queue next."""

from __future__ import annotations

import dramatiq
import pytest

from dramatiq_echomq import EchoMQBroker, StalledChecker, StalledCheckerMiddleware
from dramatiq_echomq.signals import send_signal

from ..support.brokers import lines, recoverer_of, working
from ..support.failures import Hooks, check, lose_worker
from ..support.job_data import id_of, message
from ..support.queue_data import put, state
from ..support.servers import Server, wait_until

UNTOLD = "stalled-check:untold"


class Listening(EchoMQBroker):
    """A broker whose hooks are noted."""

    def __init__(self, client, **parameters) -> None:
        self.hooks = Hooks()
        super().__init__(client=client, middleware=[self.hooks], **parameters)

    @property
    def told(self) -> list[str]:
        """The jobs whose nack was told, the first one first."""
        return [id_of(message) for name, message, _ in self.hooks.calls if name == "after_nack"]


@pytest.fixture
def broker(client):
    broker = Listening(client)
    yield broker
    broker.close()


def stalled_out(broker, count: int = 1, **options) -> list[str]:
    """Let a worker die, for the last time, while it has these jobs; returns their ids, the oldest first."""
    ids = [id_of(broker.enqueue(message(queue="default", **options))) for _ in range(count)]
    for job_id in ids[::-1]:
        broker.client.hset(f"emq:default:{job_id}", "stc", 1)
    broker.client.delete("emq:default:wait")
    put(broker.client, "default", active=ids[::-1], stalled=set(ids))
    return ids


def untold(client) -> list[str]:
    return list(state(client, "default").get(UNTOLD, {}))


def test_a_failure_is_told_once(client, broker):
    ids = stalled_out(broker, 3)

    for _ in range(3):
        check(client, broker)

    assert sorted(broker.told) == sorted(ids)
    assert {name for name in state(client, "default") if "untold" in name} == set()


def test_a_failure_whose_checker_died_is_told_by_the_next_to_look(client, broker):
    ids = stalled_out(broker)
    StalledChecker(client).check("default")  # and its process is killed here
    client.set("emq:default:stalled-check", "another sweeper", px=60_000)
    checker, _ = recoverer_of(client, "default", stalled_interval=30_000)
    checker.broker = broker

    assert checker.check("default") > 0, "it made a check of its own"

    assert broker.told == ids


def test_a_failure_that_is_being_told_is_not_told_by_another_until_its_lease_ends(client, broker):
    [job_id] = stalled_out(broker)
    StalledChecker(client).check("default")
    teller = Listening(client)

    class Dies(dramatiq.Middleware):
        def after_nack(self, broker, message):
            raise KeyboardInterrupt

    teller.add_middleware(Dies())
    with pytest.raises(KeyboardInterrupt):
        send_signal(teller, "after_queue_swept", "default")
    check(client, broker)
    assert broker.told == []

    [(_, leased_until)] = client.zrange(f"emq:default:{UNTOLD}", 0, 0, withscores=True)
    assert 50_000 < leased_until - client.time()[0] * 1000 < 62_000
    client.zadd(f"emq:default:{UNTOLD}", {job_id: leased_until - 62_000})
    check(client, broker)
    assert broker.told == [job_id]


def test_many_failures_are_told_in_few_round_trips(client, broker, monkeypatch):
    ids = stalled_out(broker, 250)
    StalledChecker(client).check("default")
    calls = client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)

    send_signal(broker, "after_queue_swept", "default")

    assert sorted(broker.told) == sorted(ids)
    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] - calls == 4
    assert untold(client) == []


@pytest.mark.parametrize("opts", ['{"removeOnFail": true}', '{"removeOnFail": {"age": 0}}', '{"removeOnFail": 1}'])
def test_jobs_that_their_retention_removes_are_told_of_as_well(client, broker, opts):
    ids = stalled_out(broker, 3)
    for job_id in ids:
        client.hset(f"emq:default:{job_id}", "opts", opts)

    check(client, broker)

    assert sorted(broker.told) == sorted(ids)
    assert len(state(client, "default").get("failed", {})) <= 1


def test_a_job_that_was_retried_before_it_was_told_is_not_told(client, broker):
    [job_id] = stalled_out(broker)
    StalledChecker(client).check("default")
    assert broker.retry("default", job_id)

    check(client, broker)

    assert (broker.told, untold(client)) == ([], [])


def test_messages_of_any_encoder_are_kept_and_jobs_of_other_runtimes_are_not(client, broker):
    kinds = {"pickle": b"\x80\x04\x95", "zlib": b"x\x9c\xab", "base64": "eyJh", "node": '{"x": 1}', "list": " [1]"}
    jobs = {job_id: {"data": data, "stc": 1} for job_id, data in kinds.items()}
    put(client, "default", active=list(kinds), stalled=set(kinds), jobs=jobs)

    StalledChecker(client).check("default")

    assert sorted(untold(client)) == ["base64", "pickle", "zlib"]


def test_failures_that_nobody_tells_are_few_and_end(client, broker):
    client.zadd(f"emq:default:{UNTOLD}", {f"old-{number}": number for number in range(10_000)})
    client.hset(f"emq:default:{UNTOLD}:jobs", "old-0", "x")
    [job_id] = stalled_out(broker)

    StalledChecker(client).check("default")

    assert client.zcard(f"emq:default:{UNTOLD}") == 10_000
    assert client.zscore(f"emq:default:{UNTOLD}", job_id)
    assert client.hkeys(f"emq:default:{UNTOLD}:jobs") == [job_id.encode()]
    for name in (UNTOLD, f"{UNTOLD}:jobs"):
        assert 0 < client.pttl(f"emq:default:{name}") <= 7 * 86_400_000


def test_keys_of_another_type_keep_no_job_from_being_failed_and_are_said_once(client, broker, caplog):
    client.set(f"emq:default:{UNTOLD}", "a text")
    [job_id] = stalled_out(broker)

    check(client, broker)
    check(client, broker)

    assert list(state(client, "default")["failed"]) == [job_id]
    [line] = lines(caplog, "WARNING")
    assert "told later" in line
    assert "untold is a string and should be a zset" in line


def test_a_flush_forgets_what_is_still_to_be_told(client, broker):
    stalled_out(broker)
    StalledChecker(client).check("default")
    broker.flush("default")
    assert untold(client) == []


def test_a_report_tells_nothing(client, broker):
    stalled_out(broker)
    StalledChecker(client).check("default")
    checker, _ = recoverer_of(client, "default", report_only=True)
    checker.broker = broker

    checker.check("default")

    assert broker.told == []


@pytest.mark.parametrize("where", ["prefix", "url", "client"])
def test_a_checker_of_other_queues_makes_the_broker_say_nothing_of_its_own(client, caplog, where):
    """The job has the same id in both places, and is well in the broker's."""
    with Server() as server, server.client() as other:
        elsewhere = client if where == "prefix" else other
        prefix = "bull" if where == "prefix" else "emq"
        middleware = {
            "prefix": lambda: StalledCheckerMiddleware(prefix="bull", stalled_interval=100),
            "url": lambda: StalledCheckerMiddleware(url=server.url, stalled_interval=100),
            "client": lambda: StalledCheckerMiddleware(client=other, stalled_interval=100),
        }[where]()
        broker = Listening(client)
        broker.add_middleware(middleware)
        broker.declare_queue("default")
        broker.pause("default")
        own = id_of(broker.enqueue(message(queue="default")))
        data = {"data": message("another", queue="default").encode(), "stc": 1}
        put(elsewhere, "default", prefix=prefix, active=[own], stalled={own}, jobs={own: data})

        with working(broker, queues={"default"}):
            wait_until(lambda: own in state(elsewhere, "default", prefix=prefix).get("failed", {}))
            wait_until(lambda: lines(caplog, "ERROR"))

        assert broker.told == []
        assert lines(caplog, "WARNING", "CRITICAL") == []


def test_a_checker_given_the_url_of_its_broker_tells_as_ever(client, redis_url):
    broker = Listening(client)
    broker.add_middleware(StalledCheckerMiddleware(url=redis_url, stalled_interval=100))
    broker.declare_queue("default")
    [job_id] = stalled_out(broker)
    lose_worker(client, job_id)

    with working(broker, queues={"default"}):
        wait_until(lambda: broker.told == [job_id])
