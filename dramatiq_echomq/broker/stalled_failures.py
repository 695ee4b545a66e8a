from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dramatiq import Broker
from dramatiq.middleware import Callbacks

from ..errors import JobStalled
from ..protocol.records import FailedJob
from .jobs import JobMessage, TakenJob, dramatiq_message_from, message_from


def stalled_message(queue_name: str, failed: FailedJob, data: bytes) -> JobMessage | None:
    """The message of a job that a check has failed, or None when the job is
    not one of Dramatiq's.

    Raises:
      UndecodableJob: When the data is nothing that could be run.
    """
    job = TakenJob.finished(failed.job_id, failed.name, data, failed.stalls)
    message = dramatiq_message_from(job, queue_name)
    if message is None:
        message_from(job, queue_name)
        return None
    return JobMessage(message, job)


def fail_stalled(
    broker: Broker, message: JobMessage, error: JobStalled, nack: Callable[[JobMessage], Any] | None = None
) -> None:
    """Make a stall that ended in failure a failure for Dramatiq: results,
    metrics and ``on_failure`` callbacks see it as they see an exception.

    Parameters:
      broker(Broker)
      message(JobMessage)
      error(JobStalled)
      nack(Callable): What nacks the message, for a job that is not failed yet.
    """
    message.fail()
    message.stuff_exception(error)
    broker.emit_before("nack", message)
    if nack is not None:
        nack(message)
    broker.emit_after("nack", message)
    if any(isinstance(middleware, Callbacks) for middleware in broker.middleware):
        _send_to_failure_callback(broker, message, error)


def _send_to_failure_callback(broker: Broker, message: JobMessage, error: JobStalled) -> None:
    actor = broker.actors.get(message.actor_name)
    target = message.options.get("on_failure") or (actor and actor.options.get("on_failure"))
    if target:
        broker.get_actor(target).send(message.asdict(), {"type": type(error).__name__, "message": str(error)})
