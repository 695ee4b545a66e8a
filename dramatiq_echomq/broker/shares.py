from __future__ import annotations

from dataclasses import dataclass, field

from .suspects import Suspects
from .threads import Runner


@dataclass(eq=False)
class Share:
    """What one fetch may use, so that no other counts on it meanwhile.

    Parameters:
      queue_name(str)
      threads(int): How many jobs it may fetch.
      suspects(int): How many of them may have stalled before.
      is_together(bool): Whether those may run beside each other.
      is_unanswered(bool): Whether the reply to the fetch was lost.
      runner(Runner): The thread that gives it back, unless an interrupt ends it.
    """

    queue_name: str
    threads: int
    suspects: int
    is_together: bool = False
    is_unanswered: bool = False
    runner: Runner = field(default_factory=Runner)


class Turns:
    """Which queue the next free thread is for: of those that wait for one, the
    one that had its turn longest ago.  Needs the mutex of whoever uses it.

    Attributes:
      waiting(dict): The prefetch of each queue whose consumer waits for a thread.
      wanting(dict): The prefetch of each queue that has more jobs, as far as is
        known, whether its consumer waits or is about to.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}
        self.wanting: dict[str, int] = {}
        self._last_turns: dict[str, int] = {}
        self._turn = 0
        self._shares: set[Share] = set()

    def reserved(self, queue_name: str | None = None) -> int:
        """Return how many threads are reserved, for one queue or for all."""
        if not self._shares:  # as nearly always
            return 0
        return sum(
            share.threads
            for share in self._shares
            if queue_name in (None, share.queue_name) and share.runner.is_alive()
        )

    def is_for_another(self, queue_name: str) -> bool:
        """Return whether the next free thread is for another queue than this one."""
        if queue_name not in self.waiting:
            return bool(self.waiting)
        own = self._last_turns.get(queue_name, 0)
        return any(self._last_turns.get(other, 0) < own for other in self.waiting)

    def share_of(self, queue_name: str, free: int) -> int:
        """Return how many of the free threads are for a queue, when those that wait
        and this one get one in turn.
        """
        if free <= 0 or not self.waiting.keys() - {queue_name}:
            return free
        queues = self.waiting.keys() | {queue_name}
        own = self._last_turns.get(queue_name, 0)
        before = sum(self._last_turns.get(other, 0) < own for other in queues)
        return free // len(queues) + (before < free % len(queues))

    def reserve(self, queue_name: str, threads: int, suspects: Suspects, pool: int | None) -> Share:
        """Reserve threads, and suspects as far as they may run now."""
        self._shares = {share for share in self._shares if share.runner.is_alive()}
        self._turn += 1
        self._last_turns[queue_name] = self._turn
        allowed, is_together = self.allowed_suspects(queue_name, suspects, pool)
        share = Share(queue_name, threads, allowed, is_together)
        self._shares.add(share)
        return share

    def allowed_suspects(self, queue_name: str, suspects: Suspects, pool: int | None) -> tuple[int, bool]:
        """Return how many suspects may run now, besides those that are reserved, and whether beside each other."""
        return suspects.allowed(queue_name, sum(share.suspects for share in self._shares), pool)

    def release(self, share: Share) -> None:
        """Give a share back, but for a suspect that may have been fetched and that nobody knows of yet."""
        if share.is_unanswered and share.suspects:
            share.threads = 0
        else:
            self._shares.discard(share)
