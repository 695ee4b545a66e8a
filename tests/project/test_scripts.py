"""The Lua files say what they take, and the shipped ones are what the sources make."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from dramatiq_echomq import QueueRefused, StalledChecker
from dramatiq_echomq.protocol.scripts import load

from ..support.queue_data import key
from ..support.servers import Server

ROOT = Path(__file__).parent.parent.parent
LUA = ROOT / "lua"
SCRIPTS = sorted(LUA.glob("*.lua"))
COMMANDS = sorted((LUA / "src" / "commands").glob("*.lua"))
INCLUDES = sorted((LUA / "src" / "includes").rglob("*.lua"))


def code_of(text: str) -> str:
    """A source without its comments and its texts."""
    text = re.sub(r"--\[\[.*?--\]\]", "", text, flags=re.DOTALL)
    return re.sub(r"--.*", "", re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text))


def defined_in(text: str) -> set[str]:
    return set(re.findall(r"^local (?:function )?(\w+)", text, re.MULTILINE))


def build(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "build-lua"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path) -> Path:
    """A directory with copies of ``lua/`` and ``tools/``, to be changed."""
    for name in ("lua", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def write_include(root: Path, name: str, text: str) -> None:
    path = root / "lua" / "src" / "includes" / f"{name}.lua"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def write_command(root: Path, *includes: str, body: str = "return 1\n") -> Path:
    lines = [f"--- include {name}\n" for name in includes]
    (root / "lua" / "src" / "commands" / "new-0.lua").write_text("".join(["--[[\nNew.\n--]]\n", *lines, body]))
    return root / "lua" / "new-0.lua"


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


def test_the_shipped_scripts_are_what_the_sources_make():
    outcome = build(ROOT, "--check")

    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize("path", COMMANDS + INCLUDES, ids=lambda path: str(path.relative_to(LUA / "src")))
def test_a_source_is_read_in_one_sitting(path):
    shortest, longest = (10, 110) if path in INCLUDES else (1, 110)

    assert shortest <= len(path.read_text("utf-8").splitlines()) <= longest


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
    own = set(re.findall(r"local (?:function )?(\w+)", text))

    needed = {provider[name] for name in used - own if name in provider}

    assert set(re.findall(r"^--- include (\S+)$", text, re.MULTILINE)) == needed


def test_every_include_is_part_of_a_script():
    shipped = "".join(path.read_text("utf-8") for path in SCRIPTS)

    for path in INCLUDES:
        assert f"--- includes/{path.relative_to(LUA / 'src' / 'includes')}\n" in shipped


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_two_parts_of_a_script_share_a_name(path):
    names = re.findall(r"^local function (\w+)", path.read_text("utf-8"), re.MULTILINE)

    assert sorted(names) == sorted(set(names))


def test_the_check_names_what_is_not_up_to_date_and_writes_nothing(copy):
    changed, extra = copy / "lua" / "addJobs-1.lua", copy / "lua" / "extra-0.lua"
    changed.write_text("return 1\n")
    extra.write_text("return 2\n")

    outcome = build(copy, "--check")

    assert outcome.returncode == 1
    assert outcome.stdout.splitlines() == [
        "lua/addJobs-1.lua is not up to date: run tools/build-lua",
        "lua/extra-0.lua has no source in lua/src/commands",
    ]
    assert (changed.read_text(), extra.read_text()) == ("return 1\n", "return 2\n")


def test_building_makes_the_check_pass(copy):
    (copy / "lua" / "addJobs-1.lua").unlink()
    (copy / "lua" / "extra-0.lua").write_text("return 2\n")

    assert build(copy).returncode == 0

    assert build(copy, "--check").returncode == 0
    assert {path.name for path in (copy / "lua").glob("*.lua")} == {path.name for path in COMMANDS}


def test_an_include_goes_once_and_above_what_needs_it(copy):
    write_include(copy, "new/base", "-- Base.\nlocal base = 1\n")
    write_include(copy, "new/left", "-- Left.\n--- include new/base\nlocal left = base\n")
    write_include(copy, "new/right", "-- Right.\n--- include new/base\nlocal right = base\n")
    built = write_command(copy, "new/left", "new/right", body="return left + right\n")

    assert build(copy).returncode == 0

    assert built.read_text() == (
        "-- Built by tools/build-lua from lua/src/commands/new-0.lua: edit that file, not this one.\n"
        "--[[\nNew.\n--]]\n"
        "\n--- includes/new/base.lua\n-- Base.\nlocal base = 1\n"
        "\n--- includes/new/left.lua\n-- Left.\nlocal left = base\n"
        "\n--- includes/new/right.lua\n-- Right.\nlocal right = base\n"
        "\n--- commands/new-0.lua\nreturn left + right\n"
    )


def test_an_include_that_is_missing_is_named(copy):
    write_command(copy, "new/nowhere")

    outcome = build(copy)

    assert outcome.returncode == 1
    assert "lua/src/commands/new-0.lua includes new/nowhere, but there is no" in outcome.stderr


def test_includes_that_need_each_other_are_a_mistake(copy):
    write_include(copy, "new/one", "-- One.\n--- include new/two\n")
    write_include(copy, "new/two", "-- Two.\n--- include new/one\n")
    write_command(copy, "new/one")

    outcome = build(copy)

    assert outcome.returncode == 1
    assert "new/one includes new/two includes new/one" in outcome.stderr


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
