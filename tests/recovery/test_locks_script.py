"""The script that renews locks, as other runtimes call it."""

from __future__ import annotations

import struct

import msgpack
import pytest
import redis

from dramatiq_echomq.protocol.msgpack import msgpack_list
from dramatiq_echomq.protocol.scripts import load

from ..support.job_data import JOB
from ..support.queue_data import put, state


@pytest.mark.parametrize("texts", [[], [b""], [b"a", b"b" * 300, b"c" * 70_000], [b"\xff\x00"], [b"x"] * 70_000])
def test_lists_are_encoded_as_the_msgpack_package_reads_them(texts):
    assert msgpack.unpackb(msgpack_list(texts), raw=True) == texts
    assert struct.unpack(">I", msgpack_list(texts)[1:5]) == (len(texts),)


def test_the_script_takes_the_four_arguments_of_other_runtimes(client):
    """It replies with the ids that could not be renewed; none comes back."""
    put(client, active=[*"abcd"], stalled={*"abcd"}, jobs=dict.fromkeys("abcd", JOB), locks=["a", "b"])
    client.set("emq:q:c:lock", "of another worker")
    tokens = msgpack.packb(["token-of-its-worker"] * 4)
    args = ["emq:q", tokens, msgpack.packb(["a", "b", "c", "d"]), 90_000]

    assert load("extendLocks-1.lua")(client, ["emq:q:stalled"], args) == [b"c", b"d"]

    found = state(client)
    assert (found["locks"], found["stalled"]) == ({"a", "b", "c"}, {"c", "d"})
    assert client.pttl("emq:q:a:lock") > 60_000


@pytest.mark.parametrize(("command", "locks"), [("pexpire", ["a", "b"]), ("set", [])])
def test_locks_that_redis_does_not_let_it_renew_are_told_apart_from_those_that_are_lost(
    client, redis_url, command, locks
):
    """Their worker may try again while they last."""
    put(client, active=[*"abc"], jobs={job_id: {**JOB, "ats": "1"} for job_id in "abc"}, locks=locks)
    client.set("emq:q:c:lock", "of another worker")
    token = "token-of-its-worker"
    args = [msgpack.packb([token] * 3), msgpack.packb([*"abc"]), 90_000, msgpack.packb(["1"] * 3)]
    client.execute_command("ACL", "SETUSER", "renewer", "on", ">x", "~*", "+@all", f"-{command}")
    try:
        with redis.Redis.from_url(redis_url, username="renewer", password="x") as renewer:
            text = load("extendLocks-1.lua").text
            lost, smallest_ttl, refused, reason = renewer.eval(text, 1, "emq:q:stalled", "emq:q", *args)
    finally:
        client.execute_command("ACL", "DELUSER", "renewer")

    assert (lost, smallest_ttl, refused) == ([token.encode()], -1, [token.encode()] * 2)
    assert reason.startswith(command.upper().encode() + b": ")
