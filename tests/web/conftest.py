from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from dramatiq_echomq.web import make_app

from ..support.pages import Pages


@pytest.fixture
def pages(client) -> Pages:
    """The page on an empty database, which may do anything."""
    return Pages(make_app(client, actions=True))


@pytest.fixture
def looking(client) -> FlaskClient:
    """The page on an empty database, which only shows."""
    return make_app(client).test_client()
