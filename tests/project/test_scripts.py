"""The Lua files say what they take, and the one that others copy is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis

from dramatiq_echomq import QueueRefused, StalledChecker
from dramatiq_echomq.protocol.scripts import expand, load

from ..support.queue_data import key
from ..support.servers import Server

LUA = Path(__file__).parent.parent.parent / "lua"
SCRIPTS = sorted(LUA.glob("*.lua"))


def documented_keys(text: str) -> list[int]:
    """The numbers of the keys that the comment at the top of a script lists."""
    comment = text[: text.index("--]]")]
    keys = re.search(r"^KEYS(.*?)(?=^ARGV|^Returns|^$)", comment, re.MULTILINE | re.DOTALL)
    return [int(number) for number in re.findall(r"(?<!\S)(\d+)(?= +\S)", keys.group(1))] if keys else []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_number_in_a_file_name_is_the_number_of_its_keys(path):
    text = path.read_text("utf-8")
    number = load(path.name).number_of_keys

    assert documented_keys(text) == list(range(1, number + 1))
    assert max((int(used) for used in re.findall(r"KEYS\[(\d+)\]", text)), default=0) <= number


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_compiles(client, path):
    assert client.script_load(load(path.name).text) == load(path.name).sha


def test_the_script_that_other_runtimes_copy_holds_its_includes():
    text = (LUA / "moveStalledJobsToWait-8.lua").read_text("utf-8")

    assert expand(text) == text, "run .ci/expand-lua"


def test_expanding_twice_changes_nothing():
    once = expand("--- include values\nreturn 1\n")

    assert "local function counter" in once
    assert expand(once) == once


def test_a_script_that_the_server_lost_is_sent_again():
    # On a server of its own: the programs on Node.js that other tests keep cannot send some of theirs again.
    with Server() as server, server.client() as client:
        checker = StalledChecker(client)
        checker.check("q")
        client.script_flush()

        assert checker.check("q").recovered == 0


def test_the_wrong_number_of_keys_is_a_mistake_of_the_caller(client):
    with pytest.raises(TypeError, match=r"moveStalledJobsToWait-8\.lua takes 8 keys, not 1"):
        load("moveStalledJobsToWait-8.lua")(client, ["one"], [])


def test_a_refusal_of_a_script_is_told_from_other_errors(client):
    client.set(key("q", "active"), "text")

    with pytest.raises(QueueRefused, match="emq:q:active is a string and should be a list"):
        StalledChecker(client).check("q")
    with pytest.raises(redis.ResponseError):
        client.eval("return redis.error_reply('ERR other')", 0)
