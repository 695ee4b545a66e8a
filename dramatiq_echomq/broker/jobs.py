from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from dramatiq import Message, MessageProxy
from dramatiq.common import current_millis

from ..validation import LARGEST_NUMBER

if TYPE_CHECKING:
    from .in_flight import InFlightJob

#: The option of a message that holds the id of its job.
JOB_ID_OPTION = "echomq_job_id"


class FetchedJob(NamedTuple):
    """A job as the script that fetched it describes it.

    Parameters:
      job_id(bytes)
      token(bytes): What its lock holds; unique to this fetch.
      name(bytes)
      data(bytes)
      started(bytes): How often it was fetched, this time included (``ats``).
      stalls(int): How often it has stalled.
      lock_duration(int): How long its lock lasts in ms.
      timestamp(int): When it was added, in ms.
      deferred_failure(bytes): The reason for which it is to be failed, or empty.
      previous_worker(bytes): For such a job, the worker that had it before.
      scheduler(bytes): The id of the job scheduler that added it, or empty.
    """

    job_id: bytes
    token: bytes
    name: bytes
    data: bytes
    started: bytes
    stalls: int
    lock_duration: int
    timestamp: int = 0
    deferred_failure: bytes = b""
    previous_worker: bytes = b""
    scheduler: bytes = b""

    @property
    def is_suspect(self) -> bool:
        """Whether it has stalled before, and may be what kills its workers."""
        return self.stalls > 0


class NewJob(NamedTuple):
    """A job as the script takes it that adds it.

    Parameters:
      job_id(str): An id that no other job has had.
      name(str)
      data(bytes)
      opts(str): A JSON object.
      when(int | str): When it is due in ms since the epoch, or ``+`` and in
        how many ms, or 0 for now.
      priority(int | str): 0 for none, which goes before 1, which goes before
        2; ``first`` to go before all that wait now.
    """

    job_id: str
    name: str
    data: bytes
    opts: str = "{}"
    when: int | str = 0
    priority: int | str = 0


class Outcome(NamedTuple):
    """How a job ended, from its ack or nack to the script.

    Parameters:
      target(str): ``completed`` or ``failed``.
      value(str): The return value as JSON, or the reason of the failure.
      stack_trace(str): A JSON list of texts, or empty.
    """

    target: str
    value: str
    stack_trace: str


#: A job that has ended, and how.
Ended = tuple[FetchedJob, Outcome]


class JobMessage(MessageProxy):
    """The message of a job that this process holds.  It may be acked on any
    consumer.

    Parameters:
      message(Message)
      job(InFlightJob)
    """

    def __init__(self, message: Message[Any], job: InFlightJob) -> None:
        super().__init__(message)
        self.job = job
        # What is asked for again and again costs less here than through MessageProxy.__getattr__.
        self.queue_name: str = message.queue_name
        self.actor_name: str = message.actor_name
        self.message_id: str = message.message_id
        self.options: dict[str, Any] = message.options

    def stuff_exception(self, exception: BaseException) -> None:
        """Keep what was raised.  It is the first thing that Dramatiq does with
        what an actor raised, long before any middleware is told.
        """
        super().stuff_exception(exception)
        self.job.finish(exception)

    def __lt__(self, other: object) -> bool:
        """Dramatiq 2.0 compares messages to run those of one priority in turn."""
        return isinstance(other, JobMessage) and self.job.sequence < other.job.sequence


def without_eta(message: Message[Any]) -> Message[Any]:
    """What is stored: a message that is delivered is due."""
    if "eta" not in message.options:
        return message
    options = {name: value for name, value in message.options.items() if name != "eta"}
    return dataclasses.replace(message, options=options)


def due_of(message: Message[Any]) -> int:
    """When a message is due in ms by the ``eta`` that a user put into its options
    by hand, or 0 for now.
    """
    eta = message.options.get("eta")
    if isinstance(eta, int | float) and not isinstance(eta, bool) and current_millis() < eta <= LARGEST_NUMBER:
        return int(eta)
    return 0
