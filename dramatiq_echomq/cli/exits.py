"""The exit codes, and the errors that end the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
import redis

from ..errors import EchoMQError, JobNotFound, QueueNotFound, QueueRefused, ServerTooOld, SettingError
from ..protocol.clients import REDIS_ERRORS
from ..protocol.logtext import on_one_line

OK = 0
FOUND = 1  # something was found, or not all could be done
MISUNDERSTOOD = 2
NOT_FOUND = 3  # no such queue or job
UNUSABLE = 4  # Redis cannot be used, or a queue is no EchoMQ 1 queue


class Failure(click.ClickException):
    """What ends the command, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors that a user can do something about into a message and an exit code."""
    try:
        yield
    except (QueueNotFound, JobNotFound) as error:
        raise Failure(str(error), NOT_FOUND) from None
    except SettingError as error:
        raise Failure(str(error), MISUNDERSTOOD) from None
    except QueueRefused as error:
        raise Failure(f"the script {error}", UNUSABLE) from None
    except ServerTooOld as error:
        raise Failure(str(error), UNUSABLE) from None
    except EchoMQError as error:
        raise Failure(str(error), FOUND) from None
    except redis.exceptions.NoPermissionError as error:
        raise Failure(f"this Redis user may not do that: {on_one_line(str(error))}", UNUSABLE) from None
    except redis.exceptions.MovedError as error:
        where = f"--url redis://{error.host}:{error.port}"
        raise Failure(f"another node of this cluster holds these queues: {where}", UNUSABLE) from None
    except BrokenPipeError:
        raise
    except REDIS_ERRORS as error:
        is_of_url = not isinstance(error, redis.ResponseError) or "DB index" in str(error)
        hint = " Look at --url, or at REDIS_URL." if is_of_url else ""
        reason = on_one_line(str(error)).rstrip(".")
        raise Failure(f"Redis cannot be used: {type(error).__name__}: {reason}.{hint}", UNUSABLE) from None
