"""Runs the tests with the mark ``at_once`` beside each other, before all others.

They start processes, and wait for them most of the time. Each runs in a thread, so it asks for no fixtures and
has servers of its own, and it changes nothing that others see.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

#: More than there are cores in most places: these tests wait more than they compute.
BESIDE_EACH_OTHER = 4


class AtOnce:
    """A pytest plugin."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(BESIDE_EACH_OTHER)
        self._running: dict[pytest.Item, Future] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=order)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        if not is_at_once(pyfuncitem):
            return None
        if not self._running:
            for item in filter(is_at_once, pyfuncitem.session.items):
                self._running[item] = self._threads.submit(item.obj, **parameters(item))
        self._running[pyfuncitem].result()
        return True

    def pytest_sessionfinish(self) -> None:
        self._threads.shutdown(cancel_futures=True)


def order(item: pytest.Item) -> int:
    """Those that run at once come first, and of them the long ones."""
    mark = item.get_closest_marker("at_once")
    return 2 if mark is None else 0 if mark.kwargs.get("long") else 1


def is_at_once(item: pytest.Item) -> bool:
    return item.get_closest_marker("at_once") is not None


def parameters(item: pytest.Item) -> dict[str, object]:
    """What the test is parametrized with."""
    return item.callspec.params if hasattr(item, "callspec") else {}
