"""The Lua files say what they take, and include what they use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis

from dramatiq_echomq import QueueRefused, StalledChecker
from dramatiq_echomq.protocol.scripts import load

from ..support.queue_data import dump, key, put
from ..support.servers import Server

ROOT = Path(__file__).parent.parent.parent
LUA = ROOT / "lua"
SCRIPTS = sorted(LUA.glob("*.lua"))
COMMANDS = sorted((LUA / "src" / "commands").glob("*.lua"))
INCLUDES = sorted((LUA / "src" / "includes").rglob("*.lua"))

JOB_TO_ADD = ["x", "work", "[]", "{}"]
#: By script that may do nothing to an unfit queue: what it is called with after the prefix.
CALLS = {
    "addJobs": [0, "echomq:1", 1, *JOB_TO_ADD, 0, 0],
    "addMovedJob": [*JOB_TO_ADD, 1, 0, 0, "echomq:1", 0, "", ""],
    "advanceScheduler": ["nightly", "repeat:nightly:1", 1, 2, "{}"],
    "describeJob": ["a", 10],
    "describeQueue": [0],
    "finishAndFetch": [0, "w", 30_000, "", "", "", 100, 0, 1, "call", 1, "{}", "", 1],
    "listJobs": ["wait", 0, 10, "", "", 100],
    "promoteJobs": ["d"],
    "purgeQueue": [10],
    "registerWorker": ["id 1 run host", "", 600_000],
    "releaseCrashed": [0, 10, 0, "", "id 1 run host"],
    "removeJobs": [0, "w"],
    "repairJobs": [0, "nowhere", "lost"],
    "requeueJobs": ["a", "token-of-its-worker"],
    "retryJobs": ["f"],
    "setPaused": ["paused"],
    "takeUntold": [10, 60_000],
}
FIRST_KEYS = {
    "registerWorker": "echomq:workers",
    "releaseCrashed": "echomq:workers",
    "takeUntold": "stalled-check:untold",
}


def code_of(text: str) -> str:
    """A source without its comments and its texts."""
    text = re.sub(r"--\[\[.*?--\]\]", "", text, flags=re.DOTALL)
    return re.sub(r"--.*", "", re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text))


def defined_in(text: str) -> set[str]:
    return names_in(re.findall(r"^local (?:function )?(\w+(?:, \w+)*)", text, re.MULTILINE))


def names_in(lists: list[str]) -> set[str]:
    return {name for each in lists for name in each.split(", ")}


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
def test_a_script_says_what_it_takes_returns_and_costs(path):
    comment, _, code = path.read_text("utf-8").partition("--]]")
    used = set(re.findall(r"ARGV\[(\d+)\]", code))

    assert [number for number in used if not re.search(rf"(?<!\S){number}(?=[ ,])", comment)] == []
    assert re.search(r"^Returns? ", comment, re.MULTILINE) or " Returns " in comment
    assert re.search(r"\bCost: ", comment)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_compiles(client, path):
    assert client.script_load(load(path.name).text) == load(path.name).sha


@pytest.mark.parametrize("path", COMMANDS + INCLUDES, ids=lambda path: str(path.relative_to(LUA / "src")))
def test_a_source_is_read_in_one_sitting(path):
    shortest, longest = (10, 110) if path in INCLUDES else (1, 110)
    lines = path.read_text("utf-8").splitlines()

    assert shortest <= len(lines) <= longest
    assert [line for line in lines if len(line) > 120 or line != line.rstrip()] == []


@pytest.mark.parametrize("path", INCLUDES, ids=lambda path: str(path.relative_to(LUA / "src")))
def test_an_include_begins_with_what_it_is(path):
    assert re.match(r"-- \w", path.read_text("utf-8"))


@pytest.mark.parametrize("path", COMMANDS + INCLUDES, ids=lambda path: str(path.relative_to(LUA / "src")))
def test_a_source_includes_what_it_uses_and_nothing_else(path):
    """What is missing would be seen only when that line runs."""
    text = path.read_text("utf-8")
    provider = {
        name: str(include.relative_to(LUA / "src" / "includes").with_suffix(""))
        for include in INCLUDES
        for name in defined_in(include.read_text("utf-8"))
    }
    used = set(re.findall(r"(?<![.:\w])([A-Za-z_]\w*)(?!\w*\s*=[^=])", code_of(text)))
    own = names_in(re.findall(r"local (?:function )?(\w+(?:, \w+)*)", text))

    needed = {provider[name] for name in used - own if name in provider}

    assert set(re.findall(r"^--- include (?:rarely )?(\S+)$", text, re.MULTILINE)) == needed


@pytest.mark.parametrize("path", COMMANDS + INCLUDES, ids=lambda path: str(path.relative_to(LUA / "src")))
def test_of_what_is_included_rarely_only_the_last_function_is_used(path):
    text = path.read_text("utf-8")
    for name in re.findall(r"^--- include rarely (\S+)$", text, re.MULTILINE):
        include = (LUA / "src" / "includes" / f"{name}.lua").read_text("utf-8")
        last = re.findall(r"^local function (\w+)", include, re.MULTILINE)[-1]

        hidden = defined_in(include) - {last} - defined_in(text)
        assert not [each for each in hidden if re.search(rf"\b{each}\b", code_of(text))]


def test_every_include_is_part_of_a_script():
    shipped = "".join(path.read_text("utf-8") for path in SCRIPTS)

    for path in INCLUDES:
        assert f"--- includes/{path.relative_to(LUA / 'src' / 'includes')}\n" in shipped


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_two_parts_of_a_script_share_a_name(path):
    names = re.findall(r"^local function (\w+)", path.read_text("utf-8"), re.MULTILINE)

    assert sorted(names) == sorted(set(names))


def test_every_script_that_may_refuse_a_queue_is_called_with_an_unfit_one():
    refusing = {path.name for path in COMMANDS if "= refusal(" in path.read_text("utf-8")}

    assert {*(f"{name}-1.lua" for name in CALLS), "moveStalledJobsToWait-8.lua"} == refusing


@pytest.mark.parametrize("script", CALLS)
@pytest.mark.parametrize("unfit", [{"meta": {"version": "echomq:2"}}, {"failed": "text"}], ids=["EchoMQ 2", "a text"])
def test_a_script_refuses_an_unfit_queue_and_writes_nothing(client, script, unfit):
    queue = {"active": ["a"], "wait": ["w"], "delayed": {"d": 4096}, "failed": {"f": 1}, "repeat": {"nightly": 1}}
    put(
        client, jobs={job_id: {} for job_id in [*"awdf", "lost", "repeat:nightly:1"]}, locks=["a"], **{**queue, **unfit}
    )
    before = dump(client)

    with pytest.raises(QueueRefused, match="Nothing was written"):
        load(f"{script}-1.lua")(client, [key("q", FIRST_KEYS.get(script, "meta"))], [key("q", ""), *CALLS[script]])

    assert dump(client) == before


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
