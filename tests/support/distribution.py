"""Which process runs which test: what pytest-xdist has to know of how many there are, and of what belongs together."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from .at_once import is_at_once

try:
    from xdist.scheduler import LoadFileScheduling
except ImportError:  # then there is one process
    LoadFileScheduling = object


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process for each core, or none besides this where the tests are few, or to be seen, or share a server."""
    few = all("::" in argument or argument.endswith(".py") for argument in config.args)
    if few or config.option.capture == "no" or "REDIS_URL" in os.environ:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Distribution:
    """A pytest plugin: the tests of a file run in one process, since they share servers, and so do all with the
    mark ``at_once``.

    Only the processes that run tests see their marks: they leave a file with the names of those that run at once.
    """

    def __init__(self) -> None:
        self._names = tempfile.NamedTemporaryFile(prefix="echomq-test-")  # noqa: SIM115

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["at_once"] = self._names.name

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if workerinput := getattr(session.config, "workerinput", None):
            names = [item.nodeid for item in session.items if is_at_once(item)]
            Path(workerinput["at_once"]).write_text(json.dumps(names))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Scheduling:
        config.option.loadscopereorder = False  # what takes longest comes first already
        return Scheduling(config, log, Path(self._names.name))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, dict, dict]:
        """Escape what cannot be sent: a log may hold what is not quite text."""
        data = yield
        sections = data.get("sections", [])
        sections[:] = [(name, text.encode(errors="backslashreplace").decode()) for name, text in sections]
        return data

    def pytest_unconfigure(self) -> None:
        self._names.close()


class Scheduling(LoadFileScheduling):
    def __init__(self, config: pytest.Config, log: Any, names: Path) -> None:
        super().__init__(config, log)
        self._names = names
        self._at_once: set[str] = set()

    def schedule(self) -> None:
        self._at_once = self._at_once or {*json.loads(self._names.read_text())}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return "at once" if nodeid in self._at_once else super()._split_scope(nodeid)
