"""The exceptions that this package raises."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

#: How much of a value an error shows, in characters.
LONGEST_VALUE = 500


class EchoMQError(Exception):
    """Base class of the errors that this package raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled and copied, as errors are on their way out of a process
        pool, without the parameters that they were made of.
        """
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[EchoMQError], args: tuple[Any, ...]) -> EchoMQError:
    return kind.__new__(kind, *args)


class SettingError(EchoMQError, ValueError):
    """A setting with a value that cannot be used.

    Parameters:
      name(str): The setting.
      source(str): Where the value came from, say ``keyword argument`` or the
        name of an environment variable.
      value(object): The value.
      allowed(str): What would have been right.
    """

    def __init__(self, name: str, source: str, value: Any, allowed: str) -> None:
        super().__init__(f"{name} ({source}) is {_shown(value)}, but it must be {allowed}")
        self.name = name
        self.source = source
        self.value = value
        self.allowed = allowed


class UnknownSetting(SettingError):
    """A setting that there is not.

    Parameters:
      name(str): What was written.
      source(str): Where, say ``keyword argument``.
      known(Collection[str]): The settings that there are.
      hint(str): What to do instead, else the one that was probably meant.
    """

    def __init__(self, name: str, source: str, known: Collection[str], hint: str = "") -> None:
        similar = get_close_matches(name, known, n=1)
        hint = hint or (f"did you mean {similar[0]}?" if similar else f"what there is: {', '.join(sorted(known))}")
        ValueError.__init__(self, f"{_shown(name)} ({source}) is not known here; {hint}")
        self.name = name
        self.source = source


class ServerTooOld(EchoMQError):
    """A Redis that has not all the commands that are needed.

    Parameters:
      version(str): What it says it is, or nothing.
      address(str): Where it was found.
    """

    def __init__(self, version: str, address: str) -> None:
        found = f"is version {version}" if version else "does not know a command that is needed"
        super().__init__(f"the Redis at {address} {found}: dramatiq-echomq needs Redis 6.2 or later, or Valkey")
        self.version = version
        self.address = address


class QueueRefused(EchoMQError):
    """A queue whose keys in Redis are not what the EchoMQ protocol says:
    a key of the wrong type, or data of EchoMQ 2.  Nothing was written.
    """


class QueueNotFound(EchoMQError, LookupError):
    """A queue that does not exist.  A queue exists once a job was added to it.

    Parameters:
      queue_name(str): What was asked for.
      prefix(str): Where it was looked for.
      known(Collection[str]): The queues that there are.
    """

    def __init__(self, queue_name: str, prefix: str, known: Collection[str]) -> None:
        self.queue_name = queue_name
        self.similar: tuple[str, ...] = tuple(get_close_matches(queue_name, known, n=3))
        if self.similar:
            hint = f"did you mean {' or '.join(map(_shown, self.similar))}?"
        elif known:
            hint = f"there are {len(known)}: {', '.join(map(_shown, sorted(known)[:10]))}"
        else:
            hint = "there is none in this database; look at the URL and the prefix"
        super().__init__(f"there is no queue {_shown(queue_name)} under the prefix {_shown(prefix)}; {hint}")


class JobNotFound(EchoMQError, LookupError):
    """A job that a queue does not have, or does not have any more.

    Parameters:
      queue_name(str)
      job_id(str): The id of a job or a message that was asked for.
      elsewhere(Collection[str]): Other queues that have a job with this id, if
        they were looked at.
    """

    def __init__(self, queue_name: str, job_id: str, elsewhere: Collection[str] = ()) -> None:
        if elsewhere:
            hint = f", but there is one in {' and '.join(map(_shown, sorted(elsewhere)[:10]))}"
        else:
            hint = ": it was removed or never added, was finished and is not kept any longer, or is in another queue"
        super().__init__(f"queue {_shown(queue_name)} has no job {_shown(job_id)}{hint}")
        self.queue_name = queue_name
        self.job_id = job_id


class JobFailed(EchoMQError):
    """The failure of a job that was not run, since something else has decided
    that it fails: a child of it in a flow has failed.

    Parameters:
      reason(str): The job's ``failedReason``.
      worker(str): The last worker that held the job, as far as known.
    """

    def __init__(self, reason: str, worker: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.worker = worker


class JobStalled(JobFailed):
    """The failure of a job whose workers died or lost its lock too often.

    Parameters:
      reason(str): The job's ``failedReason``.
      stalls(int): How often the job has stalled.
      worker(str): The last worker that held the job, as far as known.
    """

    def __init__(self, reason: str, stalls: int = 0, worker: str = "") -> None:
        super().__init__(reason, worker)
        self.stalls = stalls


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # a whole number of many digits, among others
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


class MessagesNotAdded(EchoMQError):
    """Some of many messages could not be enqueued.  What kept them from it is
    the ``__cause__``.

    Parameters:
      cause(Exception)
      added(list[Message]): Those that were.
      uncertain(list[Message]): Those of the call that failed: when no reply
        came, they may have been enqueued, all of them or none.  Sent again,
        they may be there twice.
    """

    def __init__(self, cause: Exception, added: Sequence[Any], uncertain: Sequence[Any] = ()) -> None:
        call = f" in a call with {len(uncertain)} more (see .uncertain)" if uncertain else ""
        reason = f"{type(cause).__name__}: {' '.join(str(cause).split())}"[:LONGEST_VALUE]
        super().__init__(f"{len(added)} messages were enqueued (see .added), then there was an error{call}: {reason}")
        self.added: list[Any] = list(added)
        self.uncertain: list[Any] = list(uncertain)
