"""What `explain` tells of a message that was tried again."""

from __future__ import annotations

import dramatiq
import pytest

from dramatiq_echomq.protocol.payload import retry_in

from ..support.brokers import working
from ..support.servers import wait_until


def test_a_retry_tells_what_the_attempt_before_it_raised(client, full_broker, command):
    @dramatiq.actor(broker=full_broker, queue_name="q", max_retries=1, min_backoff=1, max_backoff=1)
    def work():
        raise RuntimeError("no luck")

    message = work.send()
    with working(full_broker):
        wait_until(lambda: client.zcard("emq:q:failed"))

    retry, first = command("explain", "q", message.message_id, "--json").data
    assert retry["story"][0]["text"] == (
        "added as retry 1 of its message: the attempt before it raised RuntimeError: no luck"
    )
    assert first["story"][0]["text"] == "added"


@pytest.mark.parametrize(
    "data", [None, b"", b"[]", b"x", b"[" * 10_000, b'{"options": {"retries": "x"}}', b'{"options": 1}']
)
def test_data_that_tells_of_no_retry_is_no_harm(data):
    assert retry_in(data) == (0, "")
