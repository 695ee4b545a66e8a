from __future__ import annotations

#: How many suspects a fetch looks past, and so the largest crowd that it tells of.
LARGEST_CROWD = 100


class Suspects:
    """Which of the jobs that have stalled before this process may run, since
    one of them may kill it: one at a time, so that no other one is charged.
    When more of them wait than there are threads, as after the crash of a
    large worker, that would take for ever. Then some run beside each other:
    a check charges none of those, and lets each run alone the next time.

    Queues in which suspects wait take turns: the fetches of a busy queue, each
    of which might find one, would leave none to another queue.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._are_together = False
        self._crowds: dict[str, int] = {}
        self._turns: dict[str, None] = {}  # the queues in which some wait, in the order of their turns

    def note_fetch(self, queue_name: str, *, left: int, crowd: int, has_one: bool) -> None:
        """Note what a fetch from a queue found.

        Parameters:
          queue_name(str)
          left(int): How many suspects it left.
          crowd(int): How many of those may run beside each other.
          has_one(bool): Whether it brought one.
        """
        self._crowds[queue_name] = crowd
        if has_one or not left:
            self.note_closed(queue_name)
        if left:
            self._turns.setdefault(queue_name)

    def note_closed(self, queue_name: str) -> None:
        """Note that a queue needs no turn, or that nobody would take it."""
        self._turns.pop(queue_name, None)

    def allowed(self, queue_name: str, reserved: int, threads: int | None) -> tuple[int, bool]:
        """Return how many more may run, and whether beside each other.

        Parameters:
          queue_name(str): The queue to fetch from.
          reserved(int): How many may be fetched by calls that are under way.
          threads(int): How many threads there are; None for no worker.
        """
        running = self.in_flight + reserved
        if not running:
            if threads is not None and next(iter(self._turns), queue_name) != queue_name:
                return 0, False
            crowd = self._crowds.get(queue_name, 0)
            self._are_together = threads is not None and crowd >= min(threads, LARGEST_CROWD) > 1
        elif not self._are_together or not self._crowds.get(queue_name):
            return 0, False
        if self._are_together and threads is not None:
            return max(threads // 2 - running, 0), True
        return 1, False
