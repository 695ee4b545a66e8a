"""The rights that the user of a checker needs: all of these, and no more."""

from __future__ import annotations

import json
import logging
import pprint
import re
from dataclasses import replace

import pytest
import redis
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import QueueRefused, StalledChecker, StalledCheckerMiddleware

from ..support.acl import CHECKER_RIGHTS, PASSWORD, USER, user
from ..support.brokers import Recorder, booted, lines, recoverer_of
from ..support.queue_data import key, put, state
from ..support.servers import wait_until


def put_a_job_for_each_rule(admin) -> None:
    def child(parent: str, flag: str) -> dict:
        where = json.dumps({"id": parent, "queueKey": "emq:q", flag: True})
        return {"stc": "1", "parentKey": f"emq:q:{parent}", "parent": where}

    stalled = {
        "plain": {},
        "urgent": {"priority": "5"},
        "beside": {"ats": "1", "stc": "1", "suspect": "beside:1"},
        "planned": {"stc": "1", "rjk": "planner"},
        "bad": {"stc": "1"},
        "single": {"stc": "1", "deid": "d"},
        "unkept": {"stc": "1", "opts": '{"removeOnFail": true}'},
        "aged": {"stc": "1", "opts": '{"removeOnFail": {"age": 1}}'},
        "counted": {"stc": "1", "opts": '{"removeOnFail": 2}'},
        "strict": child("p1", "fpof"),
        "lax": child("p2", "cpof"),
        "last": child("p3", "idof"),
    }
    parents = {"p1": {}, "p2": {}, "p3": {"delay": "5000"}}
    others = {"new": {}, "healthy": {}, "done": {}, "old": {}, "older": {}}
    active = [*stalled, "new", "healthy", "gone", "done"]
    put(
        admin,
        active=active[::-1],
        jobs={**stalled, **parents, **others},
        locks=["healthy"],
        stalled=set(stalled),
        completed={"done": 1},
        failed={"older": 1, "old": 2},
        meta={"concurrency": "5"},
        repeat={"planner": 1},
        **{"waiting-children": {"p1": 1, "p2": 1, "p3": 1}, "de:d": "single", "dn:d": {"name": "work", "opts": "{}"}},
        **{"de:e": "gone", "dn:e": {"name": "work", "opts": "{}", "jid": "follower"}},
        **{"p1:dependencies": {"emq:q:strict"}, "p2:dependencies": {"emq:q:lax"}, "p3:dependencies": {"emq:q:last"}},
    )
    coming = {"event": "deduplicated", "jobId": "gone", "deduplicationId": "e", "deduplicatedJobId": "follower"}
    admin.xadd("emq:q:events", coming)


def work(client) -> list:
    """All that a checker can be asked for, with what came of it."""
    first, second = [StalledChecker(client, batch_size=4) for _ in "ab"]
    return [
        first.inspect("q")[0].verdict,
        first.job_stalled("q", "new"),
        first.sweep("q"),
        replace(second.sweep("q"), throttled_for=0),
        second.check("q"),
    ]


def without_times(queue: dict) -> str:
    """What a queue is, whenever and by whomever it became that."""
    return re.sub(r"\b\d{13,16}\b", "TIME", re.sub(r"\b[0-9a-f]{32}\b", "SWEEPER", pprint.pformat(queue)))


@pytest.fixture
def outcome(server, admin):
    """What comes of the work of a client, with the whole queue after it."""

    def outcome(client) -> list:
        admin.flushall()
        admin.script_flush()
        put_a_job_for_each_rule(admin)
        with client:
            return [*work(client), without_times(state(admin))]

    return outcome


def test_a_user_with_these_rights_can_do_all_that_a_checker_does(server, admin, outcome):
    expected = outcome(server.client())
    assert expected[2].recovered + expected[2].failed == 12
    assert expected[3].skipped
    assert outcome(user(server, admin)) == expected


@pytest.mark.parametrize("right", CHECKER_RIGHTS.split())
def test_without_one_of_the_rights_it_cannot(server, admin, outcome, right):
    expected = outcome(server.client())
    fewer = user(server, admin, " ".join(each for each in CHECKER_RIGHTS.split() if each != right))
    with pytest.raises((redis.ResponseError, QueueRefused, AssertionError)) as caught:
        assert outcome(fewer) == expected
    assert re.search("permission|can't run|may not run|may not be used|==", str(caught.value))


def test_the_middleware_runs_as_that_user(server, admin, caplog):
    caplog.set_level(logging.INFO)
    user(server, admin).close()
    put_a_job_for_each_rule(admin)
    broker, recorder = StubBroker(), Recorder()
    url = server.url.replace("redis://", f"redis://{USER}:{PASSWORD}@")
    broker.add_middleware(StalledCheckerMiddleware(url=url, stalled_interval=100))
    broker.add_middleware(recorder)
    with booted(broker, "q"):
        wait_until(lambda: recorder.named("failed") and ("q", ("new",)) in recorder.named("recovered"))
    assert not [line for line in lines(caplog, "ERROR", "CRITICAL") if "stalled too often" not in line]
    assert PASSWORD not in caplog.text


def test_a_database_other_than_0_takes_one_more_right(server, admin):
    def check():
        with server.client(db=1, username=USER, password=PASSWORD) as client:
            return StalledChecker(client).check("q")

    user(server, admin).close()
    with pytest.raises(redis.exceptions.NoPermissionError):
        check()
    user(server, admin, CHECKER_RIGHTS + "+select").close()
    assert check().recovered == 0


@pytest.mark.parametrize(("more", "warnings"), [("", 0), ("+info", 1)])
def test_a_warning_of_eviction_takes_one_more_right(server, admin, caplog, more, warnings):
    admin.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with user(server, admin, CHECKER_RIGHTS + more) as client:
            recoverer_of(client)[0].notices.warn_of_eviction()
    finally:
        admin.config_set("maxmemory-policy", "noeviction")
    assert len(lines(caplog, "WARNING", "ERROR")) == warnings


def test_that_user_can_do_nothing_else(server, admin):
    admin.set("other", "value")
    with user(server, admin) as client:
        for command in (["GET", "other"], ["KEYS", "*"], ["FLUSHALL"], ["CONFIG", "GET", "*"], ["SUBSCRIBE", "emq:q"]):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command)


def test_a_parent_that_the_user_may_not_touch_stops_no_other_job(server, admin):
    parent = {"parentKey": "other:q:p", "parent": '{"id": "p", "queueKey": "other:q", "fpof": true}'}
    put(admin, active=["b", "a"], jobs={"a": {"stc": "1", **parent}, "b": {}}, stalled={"a", "b"})
    with user(server, admin) as client:
        check = StalledChecker(client).check("q")
    assert (check.recovered_ids, check.failed_ids) == (("b",), ("a",))
    assert admin.zscore(key("q", "failed"), "a")
