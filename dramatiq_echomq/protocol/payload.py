"""What a job's data says, read without Dramatiq."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from .clients import REDIS_ERRORS
from .keys import QueueKeys

Record = TypeVar("Record")

#: The fields that make a JSON object one of Dramatiq's messages.
MESSAGE_FIELDS = {"queue_name", "actor_name", "args", "kwargs", "options", "message_id", "message_timestamp"}


@dataclass(frozen=True)
class Payload:
    """A job's data, as far as it can be read.

    Parameters:
      message_id(str): The id of Dramatiq's message.  Where another program
        added the job it is that of the job, and Dramatiq's workers log it so.
      args(tuple): The positional arguments; None where the data is unreadable.
      kwargs(dict): The keyword arguments; None where the data is unreadable.
    """

    message_id: str
    args: tuple[Any, ...] | None = None
    kwargs: dict[str, Any] | None = None


class LateField:
    """A field of a record that is read from the job's data when somebody first
    asks for it: most do not, and it takes longer than all else.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, record: Any, owner: type | None = None) -> Any:
        if record is None:
            return self
        payload = Payload("") if record._data is None else read_payload(record._data, record.job_id)
        record.__dict__.update(vars(payload))
        return record.__dict__[self.name]


def with_late_payload(record_type: type[Record]) -> type[Record]:
    """Let records of a dataclass be made by :func:`make_late`: without their
    ``message_id``, ``args`` and ``kwargs``, which those that are made as usual
    have at once.
    """
    for field in dataclasses.fields(Payload):
        setattr(record_type, field.name, LateField(field.name))
    return record_type


def make_late(record_type: type[Record], data: bytes | None, /, **fields: Any) -> Record:
    """Make a record of a job.

    Parameters:
      record_type(type)
      data(bytes): The job's data; None where it was left out.
      **fields: All fields but those that are in the data.
    """
    record = record_type.__new__(record_type)
    record.__dict__.update(fields, _data=data)
    return record


def read_payload(data: bytes, job_id: str) -> Payload:
    """Read a job's data.  Pickled messages are not read: that could run code."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return Payload(job_id)
    if isinstance(value, dict) and value.keys() >= MESSAGE_FIELDS and isinstance(value["kwargs"], dict):
        args = value["args"]
        return Payload(str(value["message_id"]), tuple(args) if isinstance(args, list) else (args,), value["kwargs"])
    args, kwargs = foreign_arguments(value)
    return Payload(job_id, args, kwargs)


def retry_in(data: bytes | None) -> tuple[int, str]:
    """Return which retry of its message a job is, 0 for none, and what the
    attempt before it raised, as Dramatiq's Retries notes it in the message.
    """
    try:
        options = json.loads(data or b"")["options"]
        return int(options["retries"]), str(options["traceback"]).rstrip().rpartition("\n")[2]
    except (ValueError, RecursionError, LookupError, TypeError):
        return 0, ""


def foreign_arguments(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that the data of another program's job stands for:
    those in ``{"args": [...], "kwargs": {...}}``, or the value as the only one.
    """
    if isinstance(value, dict) and value and value.keys() <= {"args", "kwargs"}:
        args, kwargs = value.get("args", []), value.get("kwargs", {})
        if isinstance(args, list) and isinstance(kwargs, dict):
            return tuple(args), kwargs
    return (value,), {}


def message_ids_of(client: Any, keys: QueueKeys, job_ids: Iterable[str]) -> dict[str, str]:
    """Return the ids of the messages of a few jobs, as far as they can be
    read: for log lines.  Never raises an error of Redis.
    """
    found = {}
    try:
        for job_id in job_ids:
            data = client.execute_command("HGET", keys.job(job_id), "data", NEVER_DECODE=True)
            if data:
                found[job_id] = read_payload(data, job_id).message_id
    except REDIS_ERRORS:  # there will be another chance to read them
        pass
    return found
