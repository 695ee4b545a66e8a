"""The ``dramatiq-echomq`` command, run in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from dramatiq_echomq.cli import main


@dataclass(frozen=True)
class Done:
    """What a run of the command came to."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        """The answer to ``--json``."""
        assert self.err == ""
        return json.loads(self.out)


class Command:
    """Runs the command on a Redis."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self.capsys = capsys

    def __call__(self, *words: str) -> Done:
        self.capsys.readouterr()
        code = main([*words, "--url", self.url])
        said = self.capsys.readouterr()
        return Done(code, said.out, said.err)
