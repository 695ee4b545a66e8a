"""Pages can be used with a keyboard, a screen reader, and eyes that need contrast."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dramatiq_echomq

from ..support.operator_data import put_busy_queue
from ..support.pages import job_path

CSS = (Path(dramatiq_echomq.__file__).parent / "web" / "static" / "page.css").read_text("utf-8")
ROOTS = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
LIGHT, DARK = (dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in ROOTS)
PATHS = ["/", "/stalls", "/queues/q", "/queues/q?state=failed", "/queues/none", job_path("old"), job_path("later")]

#: Text and what it stands on, and parts of pictures that mean something.
TEXTS = [(ink, ground) for ink in ("ink", "quiet", "link", "bad") for ground in ("ground", "paper")]
TEXTS += [("bad", "badge"), ("ink", "calm"), ("ink", "notice"), ("ink", "code")]
SHAPES = ["wait", "active", "delayed", "prioritized", "paused", "waiting-children", "completed", "failed", "back"]


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_shapes_stand_out(colors):
    assert len(colors) >= 18
    assert {pair for pair in TEXTS if contrast(colors[pair[0]], colors[pair[1]]) < 4.5} == set()
    assert {shape for shape in SHAPES if contrast(colors[shape], colors["paper"]) < 3} == set()


EMPTY = {"meta", "link", "input", "br"}


class Elements(HTMLParser):
    """The elements of a page, and those that are open at its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.in_label: list[dict] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag == "input" and "label" in self.open:
            self.in_label.append(dict(attributes))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_well_formed_and_everything_in_it_has_a_name(client, pages, path):
    put_busy_queue(client)
    elements = Elements(pages.client.get(path).text)
    labels = {attributes.get("for") for tag, attributes in elements.found if tag == "label"}

    assert elements.open == []
    assert [count for count in Counter(tag for tag, _ in elements.found).items() if count[0] in ("h1", "main")] == [
        ("main", 1),
        ("h1", 1),
    ]
    assert ("html", {"lang": "en"}) in elements.found
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in elements.found:
        if tag == "input" and attributes.get("type") != "hidden" and attributes not in elements.in_label:
            assert attributes.get("aria-label") or attributes.get("id") in labels, attributes
        if tag == "svg":
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true", attributes
