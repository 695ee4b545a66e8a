from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from dramatiq import Message
from dramatiq.common import current_millis, q_name

from ..errors import MessagesNotAdded, SettingError
from ..validation import LARGEST_NUMBER, text_hint
from .jobs import JOB_ID_OPTION, NewJob, due_of, without_eta
from .options import ALWAYS_KNOWN, opts_of, priority_of, warn_of_misspelt

if TYPE_CHECKING:
    from .broker import EchoMQBroker

#: How many jobs, and how many bytes of data, one call adds at most.
JOBS_AT_ONCE, BYTES_AT_ONCE = 200, 1_000_000


class When(NamedTuple):
    """When a job is due.

    Parameters:
      due(int): In ms since the epoch, or 0 for now.
      delay(int): Instead, in how many ms.
    """

    due: int
    delay: int


def with_job_id(message: Message[Any], delay: int | None) -> tuple[Message[Any], When]:
    """Return a copy of a message that knows the id of its job, and when that is due.

    Raises:
      SettingError: When the delay cannot be used.
    """
    wait = wait_of(message, delay)
    due = due_of(message) if delay is None else 0
    eta = min(current_millis() + wait, LARGEST_NUMBER) if wait else due
    options = {JOB_ID_OPTION: str(uuid4()), **({"eta": eta} if eta else {})}
    return message.copy(queue_name=q_name(message.queue_name), options=options), When(due, wait)


def wait_of(message: Message[Any], delay: Any) -> int:
    """Return a delay in whole ms.  What is 0 or less, or empty, is none.

    Raises:
      SettingError: For what is no number, True, or without an end.
    """
    if not delay:
        return 0
    if isinstance(delay, Number) and delay is not True:
        with suppress(TypeError, ValueError, OverflowError):  # a complex number, not a number, infinity
            return min(max(int(delay), 0), LARGEST_NUMBER)  # type: ignore[call-overload, no-any-return]
    source = f"given with message {message.message_id!r} of actor {message.actor_name!r}"
    allowed = f"a number of ms, or with send_with_options a timedelta{text_hint(delay, 0)}"
    raise SettingError("delay", source, delay, allowed)


def new_job(broker: EchoMQBroker, message: Message[Any], when: When) -> NewJob:
    """Return the job of a message.

    Raises:
      SettingError: When an option of the message cannot be used.
    """
    for name in message.options:
        if name not in ALWAYS_KNOWN and name not in broker.actor_options:
            warn_of_misspelt(name)
    actor = broker.actors.get(message.actor_name)
    opts = opts_of(
        message,
        actor_options=actor.options if actor else {},
        settings=broker.settings,
        due=when.due,
        delay=when.delay,
    )
    return NewJob(
        message.options[JOB_ID_OPTION],
        message.actor_name,
        without_eta(message).encode(),
        json.dumps(opts) if opts else "{}",
        f"+{when.delay}" if when.delay else when.due,
        priority_of(opts),
    )


class Batch:
    """Messages of one queue that are added together."""

    def __init__(self) -> None:
        self.messages: list[tuple[Message[Any], int | None]] = []
        self.jobs: list[NewJob] = []
        self.bytes: int = 0

    def append(self, message: Message[Any], delay: int | None, job: NewJob) -> None:
        self.messages.append((message, delay))
        self.jobs.append(job)
        self.bytes += len(job.data)

    @property
    def is_full(self) -> bool:
        return len(self.jobs) >= JOBS_AT_ONCE or self.bytes >= BYTES_AT_ONCE


def enqueue_many(
    broker: EchoMQBroker, messages: Iterable[Message[Any] | tuple[Message[Any], int | None]]
) -> list[Message[Any]]:
    """See :meth:`EchoMQBroker.enqueue_many`."""
    batches: dict[str, Batch] = {}
    copies: list[Message[Any]] = []
    added: list[Message[Any]] = []
    try:
        for entry in messages:
            message, delay = entry if isinstance(entry, tuple) else (entry, None)
            copy, when = with_job_id(message, delay)
            broker.emit_before("enqueue", copy, delay)
            copies.append(copy)
            batch = batches.setdefault(copy.queue_name, Batch())
            batch.append(copy, delay, new_job(broker, copy, when))
            if batch.is_full:
                _add(broker, batches.pop(copy.queue_name), copy.queue_name, added)
        for queue_name, batch in batches.items():
            _add(broker, batch, queue_name, added)
    except MessagesNotAdded:
        raise
    except Exception as error:  # of a message, of middleware, of whoever yields the messages
        broker.processing.note_failed_enqueue(error)
        raise MessagesNotAdded(error, added) from error
    return copies


def _add(broker: EchoMQBroker, batch: Batch, queue_name: str, added: list[Message[Any]]) -> None:
    """Add a batch, all of it or nothing."""
    try:
        broker.channel(queue_name).queue.add(batch.jobs)
    except Exception as error:
        broker.processing.note_failed_enqueue(error)
        raise MessagesNotAdded(error, added, uncertain=[message for message, _ in batch.messages]) from error
    for message, delay in batch.messages:
        added.append(message)
        broker.processing.note_enqueue(message)
        broker.emit_after("enqueue", message, delay)
