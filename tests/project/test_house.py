"""The house keeps its order: arrows point down, tests stand alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "dramatiq_echomq"
TESTS = ROOT / "tests"

#: How many lines a file may have, to be read in one sitting.
LONGEST_FILE = 250

#: The folders that each folder may import from, besides itself and the modules of the ground floor's level.
ALLOWED = {
    "protocol": set(),
    "recovery": {"protocol"},
    "broker": {"protocol"},
    "inspection": {"protocol"},
    "prometheus": {"protocol", "inspection"},
    "web": {"protocol", "recovery", "inspection"},
    "cli": {"protocol", "recovery", "broker", "inspection", "prometheus", "demo", "web"},
    "demo": {"protocol", "recovery", "broker"},
}


def imported_modules(path: Path, root: Path) -> Iterator[tuple[str, ...]]:
    """The modules of its own tree that a file imports, as parts of their path below `root`."""
    package = path.relative_to(root).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield (*base, *(node.module or "").split("."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(root.name + "."):
            yield tuple(node.module.split(".")[1:])


def package_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("folder", sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()))
def test_imports_between_folders_point_down(folder):
    found = {
        (str(path.relative_to(PACKAGE)), module[0])
        for path in (PACKAGE / folder).rglob("*.py")
        for module in imported_modules(path, PACKAGE)
        if module[0] and (PACKAGE / module[0]).is_dir() and module[0] not in ALLOWED[folder] | {folder}
    }
    assert found == set()


def test_no_test_imports_from_a_test():
    found = {
        str(path.relative_to(ROOT))
        for path in TESTS.rglob("test_*.py")
        for module in imported_modules(path, TESTS)
        if module[-1].startswith("test_")
    }
    assert found == set()


def test_no_helper_has_the_name_of_a_module_of_the_package():
    helpers = {path.stem for path in (TESTS / "support").glob("*.py")}
    assert helpers & {path.stem for path in package_files()} == {"__init__"}


def test_no_file_is_too_long():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (*package_files(), *TESTS.rglob("*.py"))
        if "node_modules" not in path.parts and (lines := len(path.read_text("utf-8").splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_no_test_uses_a_private_member_of_the_package():
    """Those of Dramatiq, of redis-py and of the tests' own classes are not meant."""
    private = {
        name
        for path in package_files()
        for name in re.findall(r"(?:self|cls)\.(_[a-z]\w*)\b|def (_[a-z]\w*)\(", path.read_text("utf-8"))
        for name in name
        if name
    }
    found = {
        (str(path.relative_to(ROOT)), node.attr)
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in private and ast.unparse(node.value) != "self"
    }
    assert found == set()


def test_processes_that_tests_start_beside_each_other_have_an_environment_of_their_own():
    """That of this process changes at the beginning and at the end of each test: tests/support/environment.py."""
    beside = [path for path in TESTS.rglob("*.py") if "mark.at_once" in path.read_text("utf-8")]
    helpers = [path for path in (TESTS / "support").glob("*.py") if path.stem != "environment"]
    calls = [
        (str(path.relative_to(ROOT)), node)
        for path in (*beside, *helpers)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("subprocess.run", "subprocess.Popen")
    ]
    found = [(where, call.lineno) for where, call in calls if _environment_of(call) in ("", "os.environ")]
    assert len(calls) > 10
    assert found == []


def _environment_of(call: ast.Call) -> str:
    """What a call that starts a process gives it as its environment, without what it adds."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "env"]
    names = {ast.unparse(node) for value in given for node in ast.walk(value) if isinstance(node, ast.Attribute)}
    return "" if not given else "os.environ" if "os.environ" in names else "its own"
