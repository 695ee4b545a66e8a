from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Callable
from typing import Any

from dramatiq import Message, MessageProxy
from dramatiq.common import current_millis
from dramatiq.errors import ActorNotFound, DecodeError

from ..errors import EchoMQError, JobStalled, SettingError
from ..protocol.keys import id_to_bytes, id_to_text
from ..protocol.logtext import on_one_line
from ..protocol.payload import foreign_arguments
from ..validation import LARGEST_NUMBER
from .message_options import require_message

#: The option of a message that holds the id of its job.
JOB_ID_OPTION = "echomq_job_id"

#: How much of a return value, a reason or a stack trace a job keeps, in characters.
TRACE_LIMIT = 20_000


class UndecodableJob(EchoMQError):
    """A job whose data is neither a message nor JSON, or a message that
    Dramatiq could not work with.
    """


@dataclasses.dataclass
class TakenJob:
    """A job that this process holds, as ``takeJobs-1.lua`` describes it.

    Parameters:
      job_id(bytes)
      token(bytes): What its lock holds; unique to this pickup.
      name(bytes)
      data(bytes)
      started(bytes): How often it was taken, this time included (``ats``).
      stalls(int): How often it has stalled.
      lock_duration(int): How long its lock lasts in ms.
      timestamp(int): When it was added, in ms.
      has_begun(bool): Whether Redis knows that it has begun.
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
    has_begun: bool = False
    deferred_failure: bytes = b""
    previous_worker: bytes = b""
    scheduler: bytes = b""

    @classmethod
    def from_row(cls, job_id: bytes, data: bytes, line: bytes, *more: bytes) -> TakenJob:
        """A job as ``takeJobs-1.lua`` describes it."""
        token, started, stalls, duration, timestamp, begun, name = line.split(b" ", 6)
        numbers = int(stalls), int(duration), int(timestamp)
        return cls(job_id, token, name, data, started, *numbers, begun == b"1", *more)

    @classmethod
    def finished(cls, job_id: str, name: str, data: bytes, stalls: int) -> TakenJob:
        """A job that nobody holds any more."""
        return cls(id_to_bytes(job_id), b"", name.encode("utf-8", "replace"), data, b"", stalls, 0)

    @property
    def is_suspect(self) -> bool:
        """Whether it has stalled before, and may be what kills its workers."""
        return self.stalls > 0


class JobMessage(MessageProxy):
    """The message of a job that this process holds, with what it takes to
    finish the job.  It may be acked on any consumer.

    Parameters:
      message(Message)
      job(TakenJob)
      sequence(int): Its place among the jobs that this process took.
    """

    def __init__(self, message: Message[Any], job: TakenJob, sequence: int = 0) -> None:
        super().__init__(message)
        self.job = job
        self.sequence = sequence
        self.result: Any = None
        self.was_announced = False
        self.lock_lost = False
        self.interrupted = False
        self.was_renewed_late = False
        self.failed_enqueue: BaseException | None = None
        self.on_exception: Callable[[JobMessage, BaseException], None] | None = None

    def stuff_exception(self, exception: BaseException) -> None:
        """Keep what was raised.  It is the first thing that Dramatiq does with
        what an actor raised, long before any middleware is told.
        """
        super().stuff_exception(exception)
        if self.on_exception is not None:
            self.on_exception(self, exception)

    def __lt__(self, other: object) -> bool:
        """Dramatiq 2.0 compares messages to run those of one priority in turn."""
        return isinstance(other, JobMessage) and self.sequence < other.sequence


def message_from(job: TakenJob, queue_name: str) -> Message[Any]:
    """Make the message of a job.  The data is one of Dramatiq's messages, or
    ``{"args": [...], "kwargs": {...}}`` from another language, or any other
    JSON value, which becomes the one argument.

    Raises:
      UndecodableJob: When the data is none of these, or when an option of the
        message cannot be used.
    """
    message = dramatiq_message_from(job, queue_name)
    if message is not None:
        return message
    args, kwargs = _foreign_arguments(job)
    job_id = id_to_text(job.job_id)
    return Message(
        queue_name=queue_name,
        actor_name=actor_name_of(job),
        args=args,
        kwargs=kwargs,
        options={JOB_ID_OPTION: job_id},
        message_id=job_id,
        message_timestamp=job.timestamp,
    )


def dramatiq_message_from(job: TakenJob, queue_name: str) -> Message[Any] | None:
    """Return the message that a job's data holds, without its ``eta`` since it
    is due, or None when the data is something else.  The job's name is the
    actor, whatever the data says: a dashboard that duplicates a job under
    another name wants another actor.

    Raises:
      UndecodableJob: When an option of the message cannot be used.
    """
    try:
        message = Message.decode(job.data)
    except DecodeError:
        return None
    if not (
        isinstance(message.actor_name, str)
        and isinstance(message.message_id, str)
        and isinstance(message.kwargs, dict)
        and isinstance(message.options, dict)
    ):
        return None
    try:
        require_message(message)
    except SettingError as error:
        raise UndecodableJob(f"its message cannot be run: {error}") from None
    message.options[JOB_ID_OPTION] = id_to_text(job.job_id)
    message.options.pop("eta", None)
    actor_name = actor_name_of(job) or message.actor_name
    if (message.queue_name, message.actor_name) == (queue_name, actor_name):
        return message
    return message.copy(queue_name=queue_name, actor_name=actor_name)


def message_id_of(data: bytes) -> str | None:
    """Return the id of the message that a job's data holds, or None for other data."""
    try:
        return str(Message.decode(data).message_id)
    except DecodeError:
        return None


def actor_name_of(job: TakenJob) -> str:
    """Return the name of the actor that a job is for.  It goes into log lines
    of Dramatiq: a name that no actor can have is made fit for one.
    """
    return on_one_line(job.name.decode("utf-8", "replace"))


def _foreign_arguments(job: TakenJob) -> tuple[tuple[Any, ...], dict[str, Any]]:
    try:
        value = json.loads(job.data)
    except (ValueError, RecursionError) as error:
        name, fault = actor_name_of(job), on_one_line(str(error))
        raise UndecodableJob(f"the data of job {name!r} is neither a Dramatiq message nor JSON: {fault}") from None
    return foreign_arguments(value)


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


def return_value_of(result: Any) -> str:
    """Return a result as JSON, or ``null`` when it cannot be that.  Never
    raises, whatever the objects in it do: the job has run, and must end.
    """
    try:
        return json.dumps(result, allow_nan=False)
    except Exception:
        return "null"


def failed_reason_of(exception: BaseException | None) -> str:
    """Return what a job's ``failedReason`` says: the type and the message, or
    the type alone when there is no message.  Never raises.
    """
    if exception is None:
        return "the message was failed without an exception"
    text = _text_of(exception)
    if isinstance(exception, JobStalled):
        return text
    if isinstance(exception, ActorNotFound):
        return f"ActorNotFound: no actor {on_one_line(text)!r} is declared in the worker that took the job"
    name = type(exception).__name__
    return f"{name}: {text}"[:TRACE_LIMIT] if text else name


def _text_of(exception: BaseException) -> str:
    try:
        return str(exception).encode("utf-8", "replace").decode()
    except Exception:
        return "(what it says cannot be shown)"


def stack_trace_of(exception: BaseException | None) -> str:
    """Return what a job's ``stacktrace`` holds: a JSON list of texts, or
    nothing.  Never raises.
    """
    if exception is None or exception.__traceback__ is None:
        return ""
    try:
        lines = "".join(traceback.format_exception(type(exception), exception, exception.__traceback__, limit=-30))
    except Exception:
        return ""
    return json.dumps([lines[-TRACE_LIMIT:]])
