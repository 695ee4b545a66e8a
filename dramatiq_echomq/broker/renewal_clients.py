from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

#: How many rounds of renewals a lock lasts.
ROUNDS_PER_LOCK = 4

#: The longest and the shortest socket timeout of a renewal, in seconds.
LONGEST_RENEWAL, SHORTEST_RENEWAL = 5.0, 0.02


class RenewalClients:
    """Clients whose timeout fits the shortest lock that is held.  There are
    few: one with the usual timeout, and others with 2.5 s, 1.25 s …

    Parameters:
      make_client(Callable): Makes a client with a socket timeout in seconds.
      usual_duration(int): How many ms a lock lasts where a job does not say so.

    Attributes:
      usual(redis.Redis): The client with the usual timeout.
    """

    def __init__(self, make_client: Callable[[float], Any], usual_duration: int) -> None:
        self.make_client = make_client
        self.usual_timeout: float = renewal_timeout(usual_duration)
        self.usual: Any = make_client(self.usual_timeout)
        self._shorter: dict[float, Any] = {}

    def with_timeout(self, timeout: float) -> Any:
        """Return a client that waits no longer than so many seconds."""
        if timeout >= self.usual_timeout:
            return self.usual
        halvings = math.ceil(math.log2(LONGEST_RENEWAL / timeout))
        timeout = max(LONGEST_RENEWAL / 2**halvings, SHORTEST_RENEWAL)
        if timeout not in self._shorter:
            self._shorter[timeout] = self.make_client(timeout)
        return self._shorter[timeout]


def renewal_timeout(lock_duration: int) -> float:
    """Return the socket timeout in seconds that locks of so many ms ask for."""
    return max(min(lock_duration / 1000 / ROUNDS_PER_LOCK, LONGEST_RENEWAL), SHORTEST_RENEWAL)
