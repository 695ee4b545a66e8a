from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .jobs import JobMessage


class FetchedMessages:
    """The messages of jobs that were fetched and not yet handed over, in their
    order.  Any thread may take one, which no other thread gets then.
    """

    def __init__(self) -> None:
        self._messages: deque[JobMessage] = deque()

    def __bool__(self) -> bool:
        return bool(self._messages)

    def append(self, message: JobMessage) -> None:
        self._messages.append(message)

    def take(self) -> JobMessage | None:
        """Take the first message, if there is one."""
        try:
            return self._messages.popleft()
        except IndexError:  # perhaps another thread was faster
            return None

    def take_all(self) -> list[JobMessage]:
        return list(iter(self.take, None))

    def keep(self, messages: Iterable[JobMessage]) -> None:
        """Keep messages that were taken, and whose jobs could be neither handed
        over nor given back, before those that came later.
        """
        kept = sorted((each for each in messages if not each.job.has_ended), key=lambda each: each.job.sequence)
        self._messages.extendleft(reversed(kept))
