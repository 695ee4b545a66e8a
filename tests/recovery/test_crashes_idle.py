"""Workers that are gone and held no lock: they were idle, or their locks had ended before."""

from __future__ import annotations

import time

from ..support.brokers import lines
from ..support.queue_data import state
from ..support.worker_data import closed, register, registered


def test_an_idle_worker_that_died_is_told_once_for_all_its_queues_and_forgotten(client, worker, watch, caplog):
    caplog.set_level("INFO")
    own, text = worker("a")
    register(client, text, queue="r")
    look, recorder = watch("q", "r")
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    assert {**registered(client), **registered(client, "r")} == {}
    assert recorder.named("crash") == [("q", ("host:a", ())), ("r", ("host:a", ()))]
    assert lines(caplog) == [
        "Worker host:a is gone, its connection to Redis has closed. It holds no lock in queues 'q', 'r' (any more)."
    ]


def test_of_a_worker_with_jobs_in_one_queue_alone_the_others_are_one_line_more(client, worker, watch, caplog):
    caplog.set_level("INFO")
    own, text = worker("a", "1")
    register(client, text, queue="r")
    look, _ = watch("q", "r")
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    gone = "Worker host:a is gone, its connection to Redis has closed."
    assert [line for line in lines(caplog) if "is gone" in line] == [
        f"{gone} 1 job of queue 'q' that it ran: '1'",
        f"{gone} It holds no lock in queue 'r' (any more).",
    ]


def test_jobs_whose_locks_had_ended_before_are_marked_at_once_and_not_said_to_be_none(client, worker, watch, caplog):
    """The connection of a worker may close late, say when its host was lost: the next sweep brings its jobs back."""
    caplog.set_level("INFO")
    own, _ = worker("a", "1", "2")
    client.delete("emq:q:1:lock", "emq:q:2:lock")
    look, recorder = watch(stalled_interval=60_000)
    closed(client, own)
    look()
    assert state(client).get("stalled", set()) == set()
    time.sleep(0.12)
    look()
    assert (state(client)["stalled"], recorder.named("recovered")) == ({"1", "2"}, [])
    assert [line for line in lines(caplog) if "is gone" in line] == [
        "Worker host:a is gone, its connection to Redis has closed. It holds no lock in queue 'q' (any more)."
    ]
    assert registered(client) == {}


def test_an_idle_worker_that_died_cuts_nobodys_grace_short(client, worker, watch):
    """A job that a sweep has just marked may be that of a worker which is only frozen."""
    own, _ = worker("a", "1")
    client.delete("emq:q:1:lock")
    client.sadd("emq:q:stalled", "1")
    look, recorder = watch()
    closed(client, own)
    look()
    time.sleep(0.12)
    look()
    assert recorder.signals == [("crash", "q", ("host:a", ()))]
    assert registered(client) == {}
