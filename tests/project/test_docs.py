"""What the pages show is true: they build, their snippets run, and their tables say what the code says."""

from __future__ import annotations

import configparser
import dataclasses
import inspect
import re
import shutil
import subprocess
import sys

import dramatiq
import pytest
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import EchoMQBroker, Settings, StalledCheckerMiddleware, StalledSignals
from dramatiq_echomq.cli import exits
from dramatiq_echomq.cli.command import VERBS
from dramatiq_echomq.inspection.doctor.findings import MEANINGS
from dramatiq_echomq.protocol.policy_options import POLICY_OPTIONS

from ..support.acl import BROKER_RIGHTS, CHECKER_RIGHTS, CRASH_RIGHTS
from ..support.documents import DOCS, README, Snippet, first_column, pages, section, snippets, text_of
from ..support.environment import ENVIRONMENT

SETTINGS = dataclasses.fields(Settings)


@pytest.mark.parametrize("page", [*pages(), *sorted(README.parent.glob("[C-S]*.rst"))], ids=lambda page: page.name)
def test_no_line_is_longer_than_those_of_the_code(page):
    assert [line for line in page.read_text("utf-8").splitlines() if len(line) > 120] == []


def snippet_with(text: str) -> Snippet:
    (found,) = (snippet for snippet in snippets("python") if text in snippet.text)
    return found


@pytest.fixture
def run(client, redis_url):
    """Runs a snippet against the test's server, in a namespace of its own."""
    before = dramatiq.broker.global_broker

    def run(snippet: Snippet) -> dict:
        namespace: dict = {"__name__": "snippet"}
        code = snippet.text.replace("redis://localhost:6379/0", redis_url)
        exec(compile(code, snippet.page, "exec"), namespace)
        return namespace

    yield run
    dramatiq.broker.global_broker = before


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("python") if snippet.is_run], ids=str)
def test_a_python_snippet_runs(run, snippet):
    run(snippet)


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("python") if not snippet.is_run], ids=str)
def test_a_python_snippet_that_needs_a_server_compiles(snippet):
    compile(snippet.text, snippet.page, "exec")


@pytest.mark.parametrize("snippet", snippets("bash"), ids=str)
def test_a_shell_snippet_parses(snippet):
    subprocess.run(["bash", "-n"], input=snippet.text, text=True, check=True)


@pytest.mark.parametrize("snippet", snippets("ini"), ids=str)
def test_an_ini_snippet_parses(snippet):
    parser = configparser.ConfigParser()
    parser.read_string(snippet.text)
    assert parser.sections()


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node.js")
@pytest.mark.parametrize("snippet", snippets("javascript"), ids=str)
def test_a_javascript_snippet_parses(snippet, tmp_path):
    file = tmp_path / "snippet.mjs"
    file.write_text(snippet.text)
    subprocess.run(["node", "--check", file], check=True)


def test_there_are_snippets_of_each_kind():
    for language in ("python", "bash", "ini", "javascript"):
        assert snippets(language), language
    shown = sum(page.read_text("utf-8").count(".. code-block:: python\n") for page in pages())
    assert len(snippets("python")) == shown


def test_the_first_snippet_sends_a_message(run):
    namespace = run(snippets("python", README)[0])
    namespace["resize"].send("/images/1.png")

    assert namespace["broker"].get_queue_message_counts("default").waiting == 1


def test_the_endpoint_of_fastapi_sends_a_message(run):
    namespace = run(snippet_with("FastAPI()"))

    answer = namespace["add_image"]("/images/1.png")

    assert namespace["broker"].get_queue_message_counts("default").waiting == 1
    assert answer.keys() == {"message", "job"}


def test_an_application_is_tested_as_shown(tmp_path):
    app, test, _ = (snippet.text for snippet in snippets("python", DOCS / "testing.rst"))
    (tmp_path / "app.py").write_text(app)
    (tmp_path / "test_app.py").write_text(test)
    pytest_there = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    environment = {**ENVIRONMENT, "UNIT_TESTS": "1", "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*map(str, pytest_there)], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_crash_is_tested_as_shown(run):
    run(snippet_with('prefix="test")'))["test_a_card_is_not_charged_again_after_a_crash"]()


def test_the_exported_variables_are_settings(monkeypatch):
    (snippet,) = snippets("bash", DOCS / "settings.rst")
    for line in snippet.text.strip().splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value)
    settings = Settings.load()

    assert (settings.stalled_interval, settings.report_only) == (10_000, True)


def keywords(taker: type) -> set[str]:
    return {name for name in inspect.signature(taker).parameters if name in {field.name for field in SETTINGS}}


def test_the_table_of_settings_is_complete_and_right():
    table = text_of("settings").split("*checks*")[0]
    documented = re.findall(r"^``(\w+)`` +\w+ +(\S+) +(\w+) ", table, re.MULTILINE)

    assert [row[:2] for row in documented] == [(field.name, str(field.default)) for field in SETTINGS]
    assert {name for name, _, whose in documented if whose != "broker"} == keywords(StalledCheckerMiddleware)
    assert {name for name, _, whose in documented if whose != "checks"} == keywords(EchoMQBroker)


def test_the_options_of_actors_are_listed():
    assert first_column(section(text_of("settings"), "Options of actors and messages")) == list(POLICY_OPTIONS)


def test_every_signal_is_listed():
    signals = [name for name in vars(StalledSignals) if name.startswith(("before_", "after_"))]

    assert [name for name in signals if f"* ``{name}(broker, " not in text_of("signals")] == []


def test_the_verbs_of_the_command_are_listed():
    table = section(text_of("command-line"), "Verbs").rpartition("\n=====")[0]

    assert sorted(name.split()[0] for name in first_column(table)) == sorted(VERBS)


def test_the_exit_codes_are_listed():
    table = section(text_of("command-line"), "Exit codes")
    codes = [value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)]

    assert [int(code) for code in re.findall(r"^(\d)  ", table, re.MULTILINE)] == sorted(codes)


def test_what_the_doctor_finds_is_listed():
    assert first_column(section(text_of("command-line"), "What the doctor finds")) == list(MEANINGS)


def test_the_rights_are_those_that_the_tests_found():
    page = text_of("security")
    shown, shown_for_the_broker = (snippet.text for snippet in snippets("text") if "ACL SETUSER" in snippet.text)

    assert sorted(re.findall(r"[~+]\S+", shown)) == sorted(CHECKER_RIGHTS.split())
    assert sorted(re.findall(r"[~+]\S+", shown_for_the_broker)) == sorted(BROKER_RIGHTS.split())
    for right in CRASH_RIGHTS.split():
        assert right in page.split("And more for some features")[1]


def test_old_messages_are_moved_with_their_delays(run, redis_url):
    old = RedisBroker(url=redis_url)
    old.declare_queue("default")
    message = dramatiq.Message(queue_name="default", actor_name="resize", args=(), kwargs={}, options={})
    old.enqueue(message)
    old.enqueue(message.copy(), delay=60_000)

    new = run(snippet_with("move_from_redis_broker("))["new"]

    counts = new.get_queue_message_counts("default")
    assert isinstance(new, EchoMQBroker)
    assert (counts.waiting, counts.delayed) == (1, 1)
    assert old.do_qsize("default") == 0


def test_the_pages_build_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy", DOCS, tmp_path]
    done = subprocess.run([str(part) for part in build], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
