"""What the README shows is true: its snippets run, and its tables say what the code says."""

from __future__ import annotations

import configparser
import dataclasses
import re
import subprocess
import textwrap
from pathlib import Path

import dramatiq
import pytest
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import EchoMQBroker, Settings, StalledSignals

from ..support.acl import BROKER_RIGHTS, CHECKER_RIGHTS, CRASH_RIGHTS

README = (Path(__file__).parent.parent.parent / "README.rst").read_text("utf-8")


def snippets(language: str) -> list[str]:
    blocks = re.findall(rf"^( *)\.\. code-block:: {language}\n\n((?:\1   .*\n|\s*\n)+)", README, re.MULTILINE)
    return [textwrap.dedent(block) for _, block in blocks]


def snippet_with(text: str) -> str:
    (found,) = (snippet for snippet in snippets("python") if text in snippet)
    return found


@pytest.fixture
def run(client, redis_url):
    """Runs a snippet against the test's server, in a namespace of its own."""
    before = dramatiq.broker.global_broker

    def run(snippet: str) -> dict:
        namespace: dict = {"__name__": "snippet"}
        exec(compile(snippet.replace("redis://localhost:6379/0", redis_url), "README.rst", "exec"), namespace)
        return namespace

    yield run
    dramatiq.broker.global_broker = before


@pytest.mark.parametrize("snippet", snippets("python"), ids=lambda snippet: snippet.strip().splitlines()[-1][:40])
def test_a_python_snippet_runs(run, snippet):
    run(snippet)


def test_there_are_snippets_of_each_kind():
    assert len(snippets("python")) >= 8
    assert len(snippets("bash")) == 5
    assert len(snippets("ini")) == 1


@pytest.mark.parametrize("snippet", snippets("bash"))
def test_a_shell_snippet_parses(snippet):
    subprocess.run(["bash", "-n"], input=snippet, text=True, check=True)


@pytest.mark.parametrize("snippet", snippets("ini"))
def test_an_ini_snippet_parses(snippet):
    parser = configparser.ConfigParser()
    parser.read_string(snippet)
    assert parser.sections()


def test_the_first_snippet_sends_a_message(run):
    namespace = run(snippets("python")[0])
    namespace["resize"].send("/images/1.png")

    assert namespace["broker"].get_queue_message_counts("default").waiting == 1


def test_the_exported_variables_are_settings(monkeypatch):
    for line in snippet_lines("export "):
        name, _, value = line.removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value)
    settings = Settings.load()

    assert (settings.stalled_interval, settings.report_only) == (10_000, True)


def snippet_lines(beginning: str) -> list[str]:
    return [line for snippet in snippets("bash") for line in snippet.splitlines() if line.startswith(beginning)]


def test_the_table_of_settings_is_complete_and_right():
    table = README[README.index("\nSettings\n") : README.index("export ")]
    documented = dict(re.findall(r"^``(\w+)`` +\w+ +(\S+) ", table, re.MULTILINE))

    assert documented == {field.name: str(field.default) for field in dataclasses.fields(Settings)}


def test_every_signal_is_listed():
    signals = [name for name in vars(StalledSignals) if name.startswith(("before_", "after_"))]

    assert [name for name in signals if f"* ``{name}(broker, " not in README] == []


def test_the_rights_are_those_that_the_tests_found(run):
    shown, shown_for_the_broker = (snippet for snippet in snippets("text") if "ACL SETUSER" in snippet)

    assert sorted(re.findall(r"[~+]\S+", shown)) == sorted(CHECKER_RIGHTS.split())
    assert sorted(re.findall(r"[~+]\S+", shown_for_the_broker)) == sorted(BROKER_RIGHTS.split())
    assert f"second ``{CRASH_RIGHTS}``" in README


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


def test_it_is_valid_restructured_text():
    docutils = pytest.importorskip("docutils.core")
    problems: list[str] = []

    class Stream:
        def write(self, text: str) -> None:
            problems.append(text)

    docutils.publish_string(README, writer="null", settings_overrides={"warning_stream": Stream(), "report_level": 1})
    assert not [problem for problem in problems if "Pygments" not in problem], "".join(problems)
