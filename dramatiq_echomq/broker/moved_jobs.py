from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from dramatiq import Message
from dramatiq.common import q_name
from dramatiq.errors import DecodeError

from ..errors import SettingError
from ..protocol.keys import QueueKeys
from ..protocol.scripts import load
from ..validation import LARGEST_NUMBER
from .broker import EchoMQBroker
from .jobs import JOB_ID_OPTION, due_of, without_eta
from .options import opts_of, priority_of
from .queue import META_VERSION

#: What the ids of jobs are made of that were messages of a RedisBroker.
NAMESPACE = uuid.UUID("5f2d1a3e-6a58-4d0c-9d1e-6e2f6d6f7a10")


class MovedJobs:
    """Adds the messages of another broker to a queue as jobs, each of them
    once, however often it is tried.

    Parameters:
      broker(EchoMQBroker): The broker whose queue it is.
      queue_name(str)
    """

    def __init__(self, broker: EchoMQBroker, queue_name: str) -> None:
        self.broker = broker
        self.queue_name = queue_name
        self.keys: QueueKeys = QueueKeys(queue_name, broker.settings.prefix)

    def add(self, old_id: str, message: Message[Any]) -> None:
        """Add a message that is to run, when its ``eta`` has come.  One with
        an option that cannot be used is added as a failed job.

        Parameters:
          old_id(str): What the other broker knew it by.
          message(Message)
        """
        due = due_of(message)
        try:
            opts = self._opts_of(message, due)
        except SettingError as error:
            self.add_failed(old_id, message, at=timestamp_of(message), reason=f"its message cannot be run: {error}")
        else:
            self._add(old_id, message, opts, due=due)

    def add_failed(self, old_id: str, message: Message[Any], *, at: int, reason: str, trace: str = "") -> None:
        """Add a message that has failed for good.

        Parameters:
          old_id(str)
          message(Message)
          at(int): When it failed, in ms since the epoch.
          reason(str)
          trace(str): The stack trace.
        """
        try:
            opts = self._opts_of(message, 0)
        except SettingError:  # it would fail at its retry
            opts = {}
        stack_trace = json.dumps([trace]) if trace else ""
        self._add(old_id, message, opts, failed_at=at, reason=reason, trace=stack_trace)

    def forget(self, old_ids: Iterable[str]) -> None:
        """Note that the other broker does not have these messages any more."""
        self.broker.client.srem(self.keys.moved, *map(job_id_of, old_ids))

    def forget_all(self) -> None:
        """Note that the other broker has no message any more that was added."""
        self.broker.client.delete(self.keys.moved)

    def _opts_of(self, message: Message[Any], due: int) -> dict[str, Any]:
        actor = self.broker.actors.get(message.actor_name)
        options = actor.options if actor else {}
        return opts_of(message, actor_options=options, settings=self.broker.settings, due=due)

    def _add(
        self,
        old_id: str,
        message: Message[Any],
        opts: dict[str, Any],
        *,
        due: int = 0,
        failed_at: int = 0,
        reason: str = "",
        trace: str = "",
    ) -> None:
        job_id = job_id_of(old_id)
        message = without_eta(message).copy(queue_name=q_name(self.queue_name), options={JOB_ID_OPTION: job_id})
        message.options.pop("redis_message_id", None)
        job = [job_id, message.actor_name, message.encode(), json.dumps(opts), timestamp_of(message)]
        args = [self.keys.base, *job, due, priority_of(opts), META_VERSION, failed_at, reason, trace]
        load("addMovedJob-1.lua")(self.broker.client, [self.keys.meta], args)


def job_id_of(old_id: str) -> str:
    """Return the id of the job that a message becomes: always the same one."""
    return str(uuid.uuid5(NAMESPACE, old_id))


def timestamp_of(message: Message[Any]) -> int:
    """Return when a message was sent first in ms, or 0 when it does not say so."""
    timestamp = message.message_timestamp
    return int(timestamp) if isinstance(timestamp, int | float) and 0 <= timestamp <= LARGEST_NUMBER else 0


def decoded(data: bytes | None) -> Message[Any] | None:
    """Return a message of the other broker, or None where it cannot be decoded."""
    try:
        return None if data is None else Message.decode(data)
    except DecodeError:
        return None


def by_old_id(messages: Iterable[Message[Any] | None]) -> dict[str, Message[Any]]:
    """Return messages by what the other broker knows them by."""
    return {
        message.options["redis_message_id"]: message
        for message in messages
        if message is not None and "redis_message_id" in message.options
    }
