from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from dramatiq import Message

if TYPE_CHECKING:
    from .in_flight import InFlightJob


class Processing(threading.local):
    """What each thread enqueues while the middleware hears how the job ended
    that it has run: retries and callbacks.

    Attributes:
      job(InFlightJob): The job whose end the middleware hears of.
      enqueued_ids(set[str]): The messages that were enqueued since it began.
    """

    def __init__(self) -> None:
        self.job: InFlightJob | None = None
        self.enqueued_ids: set[str] = set()

    def note_enqueue(self, message: Message[Any]) -> None:
        """Note that a message was enqueued, perhaps to try again what this thread has just run."""
        if self.job is not None:
            self.enqueued_ids.add(message.message_id)

    def note_failed_enqueue(self, error: Exception) -> None:
        """Note that a message could not be enqueued.  Dramatiq swallows what
        middleware raises: its message must not be acked as if all was well.
        """
        if self.job is not None:
            self.job.failed_enqueue = error
