from __future__ import annotations

import logging

import pytest
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import StalledCheckerMiddleware

from ..support.brokers import Recorder, booted, lines, recoverer_of
from ..support.queue_data import LOCK, key, put
from ..support.servers import wait_until


@pytest.fixture(autouse=True)
def all_lines(caplog):
    caplog.set_level(logging.INFO)


def dump(client) -> dict:
    """Everything in the database, byte for byte, with which keys have a TTL."""
    return {name: (client.dump(name), client.pttl(name) >= 0) for name in sorted(client.keys("*"))}


def reported(recorder) -> set[str]:
    """The jobs that reports said would come back."""
    return {job_id for _, (would_recover, _) in recorder.named("report") for job_id in would_recover}


def put_one_job_of_each_kind(client) -> None:
    jobs = {"healthy": {}, "old": {}, "bad": {"stc": "1"}, "once": {"opts": '{"attempts": 1}'}, "done": {}}
    put(
        client,
        active=["healthy", "old", "bad", "once", "done", "gone"],
        jobs=jobs,
        locks=["healthy"],
        completed={"done": 1},
    )


def test_reports_write_nothing_and_say_what_checks_would_do(client, caplog):
    put_one_job_of_each_kind(client)
    before = dump(client)
    recoverer, recorder = recoverer_of(client, report_only=True)

    recoverer.check("q")
    assert recorder.signals == [("report", "q", ((), ()))]
    recorder.signals.clear()
    recoverer.check("q")

    assert recorder.signals == [("report", "q", (("old",), ("once", "bad")))]
    assert lines(caplog) == [
        "1 stalled job of queue 'q' would have been brought back: 'old'",
        "2 jobs of queue 'q' stalled too often and would have been failed: 'once', 'bad'",
    ]
    assert dump(client) == before


def test_a_report_is_logged_again_when_something_changed(client, caplog):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})
    recoverer, recorder = recoverer_of(client, report_only=True)
    recoverer.check("q")
    recoverer.check("q")
    assert len(lines(caplog)) == 1
    assert recorder.named("report") == [("q", (("a",), ()))] * 2

    put(client, active=["b"], jobs={"b": {}}, stalled={"b"})
    recoverer.check("q")
    assert len(lines(caplog)) == 2
    assert lines(caplog)[1].startswith("2 stalled jobs")


def test_a_job_whose_lock_came_back_between_two_reports_begins_anew(client):
    put(client, active=["a"], jobs={"a": {}})
    recoverer, recorder = recoverer_of(client, report_only=True)
    recoverer.check("q")
    client.set(key("q", "a:lock"), LOCK["token"])
    recoverer.check("q")
    client.delete(key("q", "a:lock"))
    recoverer.check("q")
    assert reported(recorder) == set()
    recoverer.check("q")
    assert reported(recorder) == {"a"}


def test_the_marks_of_other_sweepers_count_in_a_report(client):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})
    recoverer, recorder = recoverer_of(client, report_only=True)
    recoverer.check("q")
    assert reported(recorder) == {"a"}


def test_a_report_is_made_although_another_sweeper_holds_the_throttle(client):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"}, stalled_check="another")
    recoverer, recorder = recoverer_of(client, report_only=True)
    recoverer.check("q")
    assert reported(recorder) == {"a"}


def test_a_worker_that_only_reports_writes_nothing(client):
    put_one_job_of_each_kind(client)
    before = dump(client)
    broker, recorder = StubBroker(), Recorder()
    broker.add_middleware(StalledCheckerMiddleware(client=client, stalled_interval=100, report_only=True))
    broker.add_middleware(recorder)
    with booted(broker, "q"):
        wait_until(lambda: reported(recorder))
    assert {signal for signal, *_ in recorder.signals} == {"report"}
    assert dump(client) == before


def test_a_refused_queue_is_refused_in_a_report_as_well(client, caplog):
    put(client, active={"x": 1})
    before = dump(client)
    recoverer, recorder = recoverer_of(client, report_only=True)
    recoverer.check("q")
    (line,) = lines(caplog)
    assert "should be a list" in line
    assert recorder.signals == []
    assert dump(client) == before


def test_a_job_that_is_twice_in_active_is_reported_once(client):
    put(client, active=["a", "b", "a"], jobs={"a": {}, "b": {}}, locks=["b"])
    recoverer, recorder = recoverer_of(client, report_only=True, batch_size=2)

    recoverer.check("q")
    recoverer.check("q")

    assert recorder.named("report")[-1] == ("q", (("a",), ()))
