"""What stands in Redis for a worker."""

from __future__ import annotations

from dramatiq_echomq.broker.own_registrations import OwnRegistrations
from dramatiq_echomq.protocol.keys import QueueKeys
from dramatiq_echomq.protocol.registrations import WorkerRegistration

from ..support.worker_data import registered


def test_a_queue_is_registered_once_and_again_to_be_refreshed(client):
    """By the consumer before the first job, and by the thread that is seen, in any order."""
    own = OwnRegistrations(client, QueueKeys)
    own.current = WorkerRegistration("worker", 1, "run", "host:1")
    own.register(own.current, ["q"])
    client.flushdb()

    own.register(own.current, ["q"])
    assert registered(client) == {}
    own.register(WorkerRegistration("worker", 2, "run", "host:1"), ["q"], again=True)
    assert registered(client) == {}, "its connection does not stand for the worker"
    own.register(own.current, ["q"], again=True)
    assert list(registered(client)) == [own.current.encode()]
