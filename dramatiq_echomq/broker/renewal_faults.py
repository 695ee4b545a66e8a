from __future__ import annotations

import time
from logging import Logger

from dramatiq.logging import get_logger

from ..errors import EchoMQError
from ..protocol.clients import REDIS_ERRORS
from ..protocol.logtext import on_one_line


class RenewalFaults:
    """What keeps locks from being renewed: the fault of single queues, or one
    of all.  Each is logged once when it begins and once when it is over.

    Attributes:
      queues(set): Those whose locks the last round could not renew.
    """

    def __init__(self) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.queues: set[str] = set()
        self._told: set[str] = set()
        self._failing_since: float | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last renewals of all queues failed."""
        return self._failing_since is not None

    @property
    def failing_for(self) -> float:
        """For how many seconds the renewals of all queues have failed."""
        return time.monotonic() - self._failing_since if self._failing_since is not None else 0.0

    def note_round(self, errors: dict[str, Exception], *, renewed: set[str]) -> None:
        """Note what a round could not renew, by queue, and what it renewed."""
        self.queues = set(errors)
        if errors and not renewed:
            if not self.is_failing:
                self._failing_since = time.monotonic()
                self._warn("Locks", next(iter(errors.values())))
            return
        if self.is_failing:
            self._failing_since = None
            self.logger.info("Locks are renewed again.")
        for queue_name in errors.keys() - self._told:
            self._warn(f"Locks of queue {queue_name!r}", errors[queue_name])
        for queue_name in self._told & renewed:
            self.logger.info("Locks of queue %r are renewed again.", queue_name)
        self._told = (self._told - renewed) | errors.keys()

    def note_silence(self, since: float, timeout: float) -> None:
        """Note that a round has had no end since then, in monotonic time."""
        if not self.is_failing:
            self._failing_since = since
            self.logger.warning("Locks cannot be renewed for now: Redis has not answered for %g s.", timeout)

    def _warn(self, what: str, error: Exception) -> None:
        is_known = isinstance(error, (*REDIS_ERRORS, EchoMQError))
        reason = f"{type(error).__name__}: {on_one_line(str(error))}"
        self.logger.warning("%s cannot be renewed for now: %s", what, reason, exc_info=None if is_known else error)
