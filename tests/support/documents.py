"""The README and the pages of docs/, and the snippets that they show."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.rst"
DOCS = ROOT / "docs"

_SNIPPET = re.compile(
    r"^(?P<indent> *)\.\. code-block:: (?P<language>\w+)\n"
    r"(?P<options>(?:(?P=indent)   :[\w-]+:.*\n)*)\n"
    r"(?P<body>(?:(?P=indent)   .*\n|\s*\n)+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Snippet:
    """A block of code that a page shows."""

    page: str
    language: str
    text: str
    #: Whether a test can run it: not what has `:class: not-run`, since it needs a server that is not there.
    is_run: bool

    def __str__(self) -> str:
        return f"{self.page}: {self.text.strip().splitlines()[-1][:40]}"


def pages() -> list[Path]:
    return [README, *sorted(DOCS.glob("*.rst"))]


def text_of(page: str) -> str:
    """The text of a page of docs/."""
    return (DOCS / f"{page}.rst").read_text("utf-8")


def snippets(language: str, page: Path | None = None) -> list[Snippet]:
    """The snippets of one language, in one page or in all."""
    found = []
    for path in pages() if page is None else [page]:
        for match in _SNIPPET.finditer(path.read_text("utf-8")):
            if match["language"] == language:
                is_run = "not-run" not in match["options"]
                found.append(Snippet(path.name, language, textwrap.dedent(match["body"]), is_run))
    return found


def section(text: str, title: str) -> str:
    """The text from a title to the next one."""
    start = text.index(f"\n{title}\n") + 1
    following = re.search(r"\n[^\n]+\n[-=]{4,}\n", text[start + 2 * len(title) :])
    return text[start : start + 2 * len(title) + following.start()] if following else text[start:]


def first_column(text: str) -> list[str]:
    """What stands between ``…`` in the first column of the simple tables of a text, in order."""
    return re.findall(r"^``([^`]+)``", text, re.MULTILINE)
