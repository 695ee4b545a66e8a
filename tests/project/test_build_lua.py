"""The shipped scripts are what the sources make."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
COMMANDS = sorted((ROOT / "lua" / "src" / "commands").glob("*.lua"))


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


def test_the_shipped_scripts_are_what_the_sources_make():
    outcome = build(ROOT, "--check")

    assert outcome.returncode == 0, outcome.stdout


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


def test_what_is_included_rarely_is_made_when_the_first_of_it_is_called(copy):
    write_include(copy, "new/base", "-- Base.\nlocal base = 1\n")
    write_include(copy, "new/other", "-- Other.\nlocal other = 2\n")
    write_include(
        copy,
        "new/rare",
        "-- Rare.\n--- include new/base\n--- include new/other\n\n"
        "local function helper(x)\n  return x + other\nend\n\nlocal function rare(x)\n  return helper(x) + base\nend\n",
    )
    built = write_command(copy, "new/base", "rarely new/rare", body="return rare(1) + t.rare(2)\n")

    assert build(copy).returncode == 0

    assert built.read_text().partition("--]]\n")[2] == (
        "\nlocal rarely -- returns what few calls need\n"
        "\n--- includes/new/base.lua\n-- Base.\nlocal base = 1\n"
        "\nlocal rare\nrarely = function()\n  if not rare then\n"
        "    --- includes/new/other.lua\n    -- Other.\n    local other = 2\n"
        "\n    --- includes/new/rare.lua\n    -- Rare.\n"
        "\n    local function helper(x)\n      return x + other\n    end\n"
        "\n    local function rare(x)\n      return helper(x) + base\n    end\n"
        "\n    rare = {\n      rare = rare,\n    }\n  end\n  return rare\nend\n"
        "\n--- commands/new-0.lua\nreturn rarely().rare(1) + t.rare(2)\n"
    )


def test_what_is_included_rarely_and_always_is_made_always(copy):
    write_include(copy, "new/base", "-- Base.\nlocal function base()\n  return 1\nend\n")
    write_include(copy, "new/left", "-- Left.\n--- include rarely new/base\nlocal left = base\n")
    built = write_command(copy, "new/left", "new/base", body="return base()\n")

    assert build(copy).returncode == 0

    assert "rarely" not in built.read_text()
    assert built.read_text().index("function base") < built.read_text().index("local left")


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
