"""Queues that are not what the protocol says: an error for that queue, and nothing written."""

from __future__ import annotations

import pytest

from dramatiq_echomq import QueueRefused, StalledChecker

from ..support.queue_data import dump, put, state

TYPES = {
    "wait": "list",
    "paused": "list",
    "active": "list",
    "delayed": "zset",
    "prioritized": "zset",
    "pc": "string",
    "completed": "zset",
    "failed": "zset",
    "stalled": "set",
    "stalled-check": "string",
    "meta": "hash",
    "marker": "zset",
    "events": "stream",
    "waiting-children": "zset",
    "repeat": "zset",
}
VALUES = {"list": ["a"], "set": {"a"}, "zset": {"a": 1}, "string": "a", "hash": {"a": "b"}}

CALLS = {
    "check": lambda checker: checker.check("q"),
    "sweep": lambda checker: checker.sweep("q"),
    "inspect": lambda checker: checker.inspect("q"),
    "inspect_job": lambda checker: checker.inspect_job("q", "a"),
    "verdicts": lambda checker: checker.verdicts("q"),
}


def put_marked(client):
    jobs = {"a": {}, "b": {"stc": "1", "opts": '{"removeOnFail": 1}'}, "c": {}}
    put(client, active=["c", "b", "a"], jobs=jobs, stalled={"a", "b"})


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name, right in TYPES.items() for kind in VALUES if kind != right],
)
def test_a_queue_with_a_key_of_another_type_is_refused_and_nothing_is_written(client, name, kind, call):
    put_marked(client)
    client.delete(f"emq:q:{name}")
    put(client, **{name: VALUES[kind]})
    before = dump(client)

    with pytest.raises(QueueRefused) as refused:
        call(StalledChecker(client))

    assert f"emq:q:{name} is a {kind} and should be a {TYPES[name]}" in str(refused.value)
    assert dump(client) == before


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("version", ["echomq:2", "echomq:2.0.1", "echomq:2-beta"])
def test_a_queue_of_echomq_2_is_refused_and_nothing_is_written(client, version, call):
    put_marked(client)
    put(client, meta={"version": version})
    before = dump(client)

    with pytest.raises(QueueRefused, match="only EchoMQ 1 is understood") as refused:
        call(StalledChecker(client))

    assert version in str(refused.value)
    assert dump(client) == before


@pytest.mark.parametrize("version", ["echomq:2\x1b[31m", "echomq:2" + 10_000 * "!"], ids=["escape", "long"])
def test_a_refusal_fits_a_log_line_whatever_the_version_says(client, version):
    put(client, meta={"version": version})

    with pytest.raises(QueueRefused) as refused:
        StalledChecker(client).check("q")

    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("version", ["echomq:1", "bullmq:5.76.0", "bullmq-pro:7", "2", ""])
def test_other_versions_are_welcome(client, version):
    put_marked(client)
    put(client, meta={"version": version})

    assert StalledChecker(client).check("q").recovered_ids == ("a",)


def test_a_refused_queue_is_checked_again_once_it_is_repaired(client):
    put_marked(client)
    put(client, failed=["a"])
    checker = StalledChecker(client)
    with pytest.raises(QueueRefused):
        checker.sweep("q")

    client.delete("emq:q:failed")

    check = checker.sweep("q")
    assert (check.recovered_ids, check.failed_ids) == (("a",), ("b",))
    assert set(state(client)["failed"]) == {"b"}


def test_a_refused_queue_is_no_trouble_for_the_others(client):
    put(client, "bad", active={"a": 1})
    put(client, "good", active=["a"], jobs={"a": {}}, stalled={"a"})
    checker = StalledChecker(client)

    with pytest.raises(QueueRefused):
        checker.check("bad")

    assert checker.check("good").recovered_ids == ("a",)


def test_a_probe_of_a_job_names_a_key_of_the_wrong_type(client):
    put(client, active={"a": 1})

    with pytest.raises(QueueRefused, match="emq:q:active is a zset and should be a list"):
        StalledChecker(client).job_stalled("q", "a")
