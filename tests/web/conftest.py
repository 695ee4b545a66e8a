from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from jinja2 import FileSystemBytecodeCache

from dramatiq_echomq.web import make_app
from dramatiq_echomq.web.app import PageApp

from ..support.pages import Pages


@pytest.fixture(scope="session", autouse=True)
def compiled_templates(tmp_path_factory) -> Iterator[None]:
    """Compile each template once, and not once for each page that a test makes."""
    compiled = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PageApp.jinja_options, "bytecode_cache", compiled)
        yield


@pytest.fixture
def pages(client) -> Pages:
    """The page on an empty database, which may do anything."""
    return Pages(make_app(client, actions=True))


@pytest.fixture
def looking(client) -> FlaskClient:
    """The page on an empty database, which only shows."""
    return make_app(client).test_client()
