"""What the README shows is true, and no link of it or of the package leads to what there is not."""

from __future__ import annotations

import dataclasses
import re

import pytest

from dramatiq_echomq import Settings

from ..support.documents import DOCS, README, ROOT, pages, snippets

TEXT = README.read_text("utf-8")


def test_it_is_valid_restructured_text():
    docutils = pytest.importorskip("docutils.core")
    problems: list[str] = []

    class Stream:
        def write(self, text: str) -> None:
            problems.append(text)

    docutils.publish_string(TEXT, writer="null", settings_overrides={"warning_stream": Stream(), "report_level": 1})
    assert not [problem for problem in problems if "Pygments" not in problem], "".join(problems)


def test_its_links_lead_to_pages_and_pictures_that_there_are():
    """They lead to files beside it: the repository has no address of its own yet."""
    links = re.findall(r"^\.\. (?:image::|_[^:]+:) (?!https:)(\S+)", TEXT, re.MULTILINE)

    assert len(links) >= 10
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_nobody_is_sent_to_a_repository_that_is_not_published():
    texts = [page.read_text("utf-8") for page in (*pages(), *ROOT.glob("*.rst"), ROOT / "pyproject.toml")]

    assert not [text for text in texts if "dramatiq-echomq/dramatiq-echomq" in text]


def test_every_page_of_the_documentation_is_linked():
    linked = set(re.findall(r": docs/(\S+)\.rst", TEXT))

    assert {page.stem for page in DOCS.glob("*.rst")} - linked == {"index", "reference"}


def test_it_has_the_two_commands_to_try():
    commands = [snippet.text.strip() for snippet in snippets("bash", README)]

    assert 'pip install -e ".[demo]" && dramatiq-echomq demo' in commands
    assert 'pip install -e ".[test]" && pytest' in commands


def test_the_settings_that_it_names_have_these_defaults():
    named = dict(re.findall(r"^``(\w+)`` +\w+ +(\S+) ", TEXT, re.MULTILINE))
    defaults = {field.name: str(field.default) for field in dataclasses.fields(Settings)}

    assert named
    assert named == {name: defaults[name] for name in named}
