"""What Dramatiq's own middleware does with a stall that ends in failure."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq.middleware import GroupCallbacks
from dramatiq.middleware.prometheus import Prometheus
from dramatiq.rate_limits import Barrier
from dramatiq.rate_limits.backends import StubBackend as StubLimits
from dramatiq.results import ResultFailure, Results
from dramatiq.results.backends import RedisBackend, StubBackend

from dramatiq_echomq import JobStalled

from ..support.brokers import value_of
from ..support.failures import WAYS, by_sweep
from ..support.job_data import id_of
from ..support.queue_data import LIMIT, state


@WAYS
def test_a_stalled_out_job_is_not_retried_but_its_retries_are_exhausted(client, full_broker, told, stall_out):
    @dramatiq.actor(broker=full_broker, on_retry_exhausted="told", max_retries=7, retry_when=lambda *_: True)
    def work():
        pass

    sent = work.send()
    stall_out(client, full_broker, sent)

    [(message, numbers)] = told()
    assert (message["message_id"], numbers) == (sent.message_id, {"retries": 0, "max_retries": 7})
    assert {name for name in state(client, "default") if "-" in name and ":" not in name} == {id_of(sent)}


def test_an_actor_that_may_throw_it_has_no_exhausted_retries(client, full_broker, told):
    @dramatiq.actor(broker=full_broker, on_retry_exhausted="told", throws=JobStalled)
    def work():
        pass

    by_sweep(client, full_broker, work.send())
    assert told() == []


@WAYS
@pytest.mark.parametrize(
    ("of_actor", "of_message"), [({"on_failure": "told"}, {}), ({}, {"on_failure": "told"})], ids=["actor", "message"]
)
def test_on_failure_is_enqueued_as_for_an_exception(client, full_broker, told, stall_out, of_actor, of_message):
    @dramatiq.actor(broker=full_broker, **of_actor)
    def work(x):
        pass

    sent = work.send_with_options(args=(5,), **of_message)
    stall_out(client, full_broker, sent)

    [(message, exception)] = told()
    assert (message["message_id"], message["args"], message["actor_name"]) == (sent.message_id, [5], "work")
    assert exception == {"type": "JobStalled", "message": LIMIT}


@WAYS
@pytest.mark.parametrize("kind", ["stub", "redis"])
def test_a_result_raises_at_once(client, full_broker, kind, stall_out):
    backend = StubBackend() if kind == "stub" else RedisBackend(client=client)
    full_broker.add_middleware(Results(backend=backend))

    @dramatiq.actor(broker=full_broker, store_results=True)
    def work():
        pass

    sent = work.send()
    stall_out(client, full_broker, sent)

    with pytest.raises(ResultFailure, match=f"JobStalled: {LIMIT}"):
        sent.get_result(backend=backend, block=False)


@WAYS
def test_the_metrics_of_dramatiq_count_it_and_none_is_left_in_progress(client, full_broker, monkeypatch, stall_out):
    for variable in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        monkeypatch.setenv(variable, "")  # they are set by the middleware, and go with this test
    metrics = Prometheus()
    metrics.after_process_boot(full_broker)
    full_broker.add_middleware(metrics)
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)

    stall_out(client, full_broker, full_broker.actors["work"].send())

    assert value_of(metrics.inprogress_messages) == 0
    for counter in (metrics.total_messages, metrics.total_errored_messages, metrics.total_rejected_messages):
        assert value_of(counter) == 1


@WAYS
def test_a_group_is_not_done_when_the_last_of_its_jobs_has_stalled_out(client, full_broker, told, stall_out):
    limits = StubLimits()
    full_broker.add_middleware(GroupCallbacks(limits))
    dramatiq.actor(lambda: None, actor_name="work", broker=full_broker)
    callback = full_broker.actors["told"].message(None, None).asdict()
    Barrier(limits, "group").create(parties=1)
    sent = full_broker.actors["work"].send_with_options(
        group_completion_uuid="group", group_completion_callbacks=[callback]
    )

    stall_out(client, full_broker, sent)

    assert told() == []
    assert Barrier(limits, "group").wait(block=False), "it was counted as done"
