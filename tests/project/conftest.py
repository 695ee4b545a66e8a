from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from ..support.servers import Server


@pytest.fixture
def admin(server: Server) -> Iterator[redis.Redis]:
    """A client that may do anything on the server of this module, which is empty and knows no script."""
    with server.client() as admin:
        admin.flushall()
        admin.script_flush()
        yield admin
