"""The data of jobs as messages, and the ends of messages as what jobs keep of them."""

from __future__ import annotations

import json
import traceback
from typing import Any

from dramatiq import Message
from dramatiq.errors import ActorNotFound, DecodeError

from ..errors import EchoMQError, JobFailed, SettingError
from ..protocol.keys import id_to_text
from ..protocol.logtext import on_one_line
from ..protocol.payload import foreign_arguments
from .jobs import JOB_ID_OPTION, FetchedJob, Outcome
from .message_options import require_message

#: How much of a reason or a stack trace a job keeps, in characters.
TRACE_LIMIT = 20_000


class UndecodableJob(EchoMQError):
    """A job whose data is neither a message nor JSON, or a message that
    Dramatiq could not work with.
    """


def message_from(job: FetchedJob, queue_name: str) -> Message[Any]:
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
    args, kwargs = foreign_arguments_of(job)
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


def dramatiq_message_from(job: FetchedJob, queue_name: str) -> Message[Any] | None:
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


def actor_name_of(job: FetchedJob) -> str:
    """Return the name of the actor that a job is for.  It goes into log lines
    of Dramatiq: a name that no actor can have is made fit for one.
    """
    return on_one_line(job.name.decode("utf-8", "replace"))


def foreign_arguments_of(job: FetchedJob) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments in the data of a job that holds no message.

    Raises:
      UndecodableJob: When the data is not JSON either.
    """
    try:
        value = json.loads(job.data)
    except (ValueError, RecursionError) as error:
        name, fault = actor_name_of(job), on_one_line(str(error))
        raise UndecodableJob(
            f"the data of job {name!r} is neither a Dramatiq message nor JSON: {fault}. Send JSON, or give this "
            "program the encoder of the sender (dramatiq.set_encoder)"
        ) from None
    return foreign_arguments(value)


def completion_of(result: Any) -> Outcome:
    """Return the outcome of a job whose actor returned.  Never raises."""
    return Outcome("completed", return_value_of(result), "")


def failure_of(exception: BaseException | None) -> Outcome:
    """Return the outcome of a job that failed.  Never raises."""
    return Outcome("failed", failed_reason_of(exception), stack_trace_of(exception))


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
    if isinstance(exception, JobFailed):
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
