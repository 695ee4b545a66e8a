"""The face of the checker: what it takes, what it refuses, what it answers."""

from __future__ import annotations

import dataclasses
import multiprocessing
import subprocess
import sys

import pytest
import redis
import redis.asyncio

from dramatiq_echomq import SettingError, StalledCheck, StalledChecker

from ..support.queue_data import put


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("prefix", value) for value in ("", "emq:", ":", b"emq", None, 5)],
        *[("stalled_interval", value) for value in (0, -1, 1.5, 30_000.0, "30000", True, None, float("nan"))],
        *[("max_stalled_count", value) for value in (-1, 0.5, "1", True, False, None)],
        *[("batch_size", value) for value in (0, -1, 2.0, "10", True, None)],
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_its_value(client, name, value):
    with pytest.raises(SettingError) as refused:
        StalledChecker(client, **{name: value})

    assert isinstance(refused.value, ValueError)
    assert str(refused.value).startswith(f"{name} (keyword argument) is {value!r}, but it must be ")


@pytest.mark.parametrize("settings", [{"max_stalled_count": 0}, {"stalled_interval": 100}, {"batch_size": 1}])
def test_the_smallest_settings_can_be_used(client, settings):
    assert StalledChecker(client, **settings).check("q") == StalledCheck("q")


@pytest.mark.parametrize(
    "client",
    [
        None,
        "redis://localhost:6379/0",
        object(),
        redis.Redis,
        redis.ConnectionPool(),
        redis.asyncio.Redis(),
        redis.asyncio.RedisCluster(startup_nodes=[redis.asyncio.cluster.ClusterNode("localhost", 1)]),
    ],
    ids=lambda client: type(client).__module__ + "." + type(client).__name__,
)
def test_a_client_that_cannot_be_used_is_refused(client):
    with pytest.raises(SettingError, match=r"client .* must be a redis.Redis or redis.cluster.RedisCluster"):
        StalledChecker(client)


def test_settings_are_keywords(client):
    with pytest.raises(TypeError):
        StalledChecker(client, "emq")


@pytest.mark.parametrize("queue", ["", None, 5, b"q", ".DQ", ".XQ", ["q"]])
@pytest.mark.parametrize("method", ["check", "sweep", "inspect", "job_stalled"])
def test_a_queue_name_that_is_none_is_refused(client, method, queue):
    arguments = [queue, "a"] if method == "job_stalled" else [queue]

    with pytest.raises(ValueError, match="the queue name is"):
        getattr(StalledChecker(client), method)(*arguments)


@pytest.mark.parametrize("job_id", [None, 5, 1.5, ["a"]])
def test_a_job_id_that_is_none_is_refused(client, job_id):
    with pytest.raises(ValueError, match="the job id is"):
        StalledChecker(client).job_stalled("q", job_id)


@pytest.mark.parametrize("method", ["check", "sweep", "inspect"])
def test_an_unreachable_redis_is_a_redis_error(method):
    unreachable = redis.Redis(port=1, retry=None)

    with pytest.raises(redis.ConnectionError):
        getattr(StalledChecker(unreachable), method)("q")


def test_a_checker_can_be_made_before_redis_is_there():
    checker = StalledChecker(redis.Redis(port=1, retry=None))

    with pytest.raises(redis.ConnectionError):
        checker.check("q")


def test_what_a_check_did_cannot_be_changed(client):
    check = StalledChecker(client).check("q")

    with pytest.raises(dataclasses.FrozenInstanceError):
        check.recovered = 5


@pytest.mark.parametrize(
    ("queue", "stalled"),
    [
        ({"active": ["b", "a"]}, True),
        ({"active": ["a"], "stalled": {"a"}}, True),
        ({"active": ["a"], "locks": ["a"]}, False),
        ({"active": ["a"], "a:lock": {"x": "y"}}, False),
        ({"wait": ["a"], "active": ["b"]}, False),
        ({"paused": ["a"]}, False),
        ({"completed": {"a": 1}}, False),
        ({"failed": {"a": 1}, "stalled": {"a"}}, False),
        ({"locks": ["a"]}, False),
        ({}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("job_id", ["a", b"a"])
def test_a_job_is_stalled_when_it_is_active_and_has_no_lock(client, job_id, queue, stalled):
    put(client, jobs={"a": {}, "b": {}}, **queue)

    assert StalledChecker(client).job_stalled("q", job_id) is stalled


def test_asking_for_a_stalled_job_changes_nothing(client):
    put(client, active=["a"], jobs={"a": {}})
    checker = StalledChecker(client)

    checker.job_stalled("q", "a")

    assert checker.check("q") == StalledCheck("q", marked=1)


def test_the_checker_works_without_dramatiq_and_without_threads():
    program = """
import sys, threading, redis
from dramatiq_echomq import StalledChecker
StalledChecker(redis.Redis(port=1))
sys.exit("dramatiq" in sys.modules or threading.active_count() > 1)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=100).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_checker_that_was_made_before_a_fork_is_a_sweeper_of_its_own_in_each_process(client):
    """Else the second process would be handed the reply of the first one's sweep as its own."""
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})
    checker = StalledChecker(client)
    child = multiprocessing.get_context("fork").Process(target=checker.check, args=("q",))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    put(client, active=["b"], jobs={"b": {}})

    assert checker.check("q") == StalledCheck("q", marked=1)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_the_throttle_of_a_forked_process_holds(client):
    checker = StalledChecker(client)
    child = multiprocessing.get_context("fork").Process(target=checker.sweep, args=("q",))
    child.start()
    child.join(30)

    assert checker.sweep("q").skipped
