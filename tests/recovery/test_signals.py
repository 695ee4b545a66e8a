from __future__ import annotations

import logging

import pytest
from dramatiq import Middleware
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import QueueRefused, StalledCheck, StalledChecker, StalledSignals
from dramatiq_echomq.signals import send_signal

from ..support.brokers import Recorder, recoverer_of
from ..support.queue_data import NOW, put


def test_a_check_that_finds_nothing_sends_zeros_and_no_ids(client):
    recoverer, recorder = recoverer_of(client)
    recoverer.check("q")
    assert recorder.signals == [("check", "q", (0, 0))]


def test_each_check_says_what_it_brought_back_and_what_it_failed(client):
    put(client, active=["new", "bad", "old"], jobs={"new": {}, "bad": {"stc": "1"}, "old": {}}, stalled={"bad", "old"})
    recoverer, recorder = recoverer_of(client)

    recoverer.check("q")
    assert recorder.signals == [("check", "q", (1, 1)), ("recovered", "q", ("old",)), ("failed", "q", ("bad",))]


def test_the_ids_come_with_the_oldest_job_first(client):
    put(client, active=["3", "2", "1"], jobs={job_id: {} for job_id in "123"}, stalled=set("123"))
    recoverer, recorder = recoverer_of(client)
    recoverer.check("q")
    assert recorder.named("recovered") == [("q", ("1", "2", "3"))]


def test_a_check_that_another_sweeper_keeps_from_being_made_sends_nothing(client):
    put(client, stalled_check="another")
    client.pexpire("emq:q:stalled-check", 60_000)
    recoverer, recorder = recoverer_of(client)
    sweeps = SweepRecorder()
    recoverer.broker.add_middleware(sweeps)
    assert recoverer.check("q") > 50_000
    assert recorder.signals == sweeps.sweeps == []


class SweepRecorder(StalledSignals):
    """Keeps what it is told of sweeps."""

    def __init__(self):
        self.sweeps = []

    def after_stalled_sweep(self, broker, queue_name, *, seconds, check, error):
        assert 0 < seconds < 5
        self.sweeps.append((queue_name, check, error))


@pytest.mark.parametrize("report_only", [False, True])
def test_each_sweep_is_told_with_what_it_did_and_one_that_failed_with_why(client, report_only):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})
    recoverer, recorder = recoverer_of(client, report_only=report_only, stalled_interval=60_000)
    sweeps = SweepRecorder()
    recoverer.broker.add_middleware(sweeps)

    recoverer.check("q")
    assert sweeps.sweeps == [("q", StalledCheck("q", recovered=1, recovered_ids=("a",)), None)]

    sweeps.sweeps.clear()
    put(client, stalled_check="another", active="no list")
    client.pexpire("emq:q:stalled-check", 60_000)
    recorder.signals.clear()
    recoverer.check("q")
    [(queue_name, check, error)] = sweeps.sweeps
    assert (queue_name, check, type(error)) == ("q", None, QueueRefused)
    assert recorder.signals == []


@pytest.mark.usefixtures("clock")
def test_a_check_says_how_long_ago_a_recovered_job_was_fetched(client):
    ages = {"known": {"processedOn": str(NOW - 50_000)}, "unknown": {}, "later": {"processedOn": str(NOW + 5)}}
    put(client, active=list(ages), jobs=ages, stalled=set(ages))
    check = StalledChecker(client, batch_size=1).check("q")
    assert dict(zip(check.recovered_ids, check.recovered_ages, strict=True)) == {
        "known": 50_000,
        "unknown": None,
        "later": 0,
    }


def test_signals_go_to_the_middleware_that_was_added_last_first():
    order = []

    class Listener(StalledSignals):
        def __init__(self, name):
            self.name = name

        def after_stalled_check(self, broker, queue_name, *, recovered, failed):
            order.append(self.name)

    broker = StubBroker(middleware=[Listener(1), Listener(2), Listener(3)])
    send_signal(broker, "after_stalled_check", "q", recovered=0, failed=0)
    assert order == [3, 2, 1]


class HasNoHook(Middleware):
    pass


def test_middleware_without_the_hook_is_skipped_in_silence(caplog):
    caplog.set_level(logging.DEBUG)
    recorder = Recorder()
    broker = StubBroker(middleware=[recorder, HasNoHook()])
    send_signal(broker, "after_stalled_failed", "q", ("a",))
    assert recorder.signals == [("failed", "q", ("a",))]
    assert caplog.records == []


class RaisesInHook(Middleware):
    def after_stalled_check(self, broker, queue_name, *, recovered, failed):
        raise LookupError("out of luck")


class RaisesBeforeHook(Middleware):
    @property
    def after_stalled_check(self):
        raise LookupError("out of luck")


class TakesNoArguments(Middleware):
    def after_stalled_check(self):
        raise NotImplementedError


class IsNoFunction(Middleware):
    after_stalled_check = "luck"


@pytest.mark.parametrize("broken", [RaisesInHook, RaisesBeforeHook, TakesNoArguments, IsNoFunction])
def test_an_error_in_a_hook_is_logged_and_reaches_nobody_else(broken, caplog):
    recorder = Recorder()
    broker = StubBroker(middleware=[recorder, broken()])
    send_signal(broker, "after_stalled_check", "q", recovered=0, failed=0)
    assert recorder.signals == [("check", "q", (0, 0))]
    (record,) = caplog.records
    assert record.levelname == "CRITICAL"
    assert "after_stalled_check" in record.getMessage()
    assert record.exc_info


def test_a_broken_hook_does_not_end_the_checks(client):
    recoverer, recorder = recoverer_of(client)
    recoverer.broker.add_middleware(RaisesInHook())
    recoverer.check("q")
    client.delete("emq:q:stalled-check")
    recoverer.check("q")
    assert len(recorder.named("check")) == 2


def test_the_base_class_has_every_hook_and_they_do_nothing():
    signals = StalledSignals()
    broker = StubBroker(middleware=[])
    assert signals.after_stalled_check(broker, "q", recovered=1, failed=1) is None
    assert signals.after_stalled_recovered(broker, "q", ["a"]) is None
    assert signals.after_stalled_failed(broker, "q", ["a"]) is None
