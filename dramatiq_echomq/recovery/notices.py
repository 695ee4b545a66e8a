from __future__ import annotations

from typing import Any

from dramatiq.logging import get_logger


class Notices:
    """What a worker says once about the Redis and the queues that it finds.

    Parameters:
      client(redis.Redis)
    """

    def __init__(self, client: Any) -> None:
        self.logger = get_logger(__name__, type(self))
        self.client = client
        self._policy = "noeviction"

    def warn_of_eviction(self) -> None:
        """Warn when Redis may remove locks to free memory."""
        try:
            policy = self.client.info("memory").get("maxmemory_policy", "noeviction")
        except Exception as error:
            self.logger.debug("Could not read maxmemory-policy: %s", error)
            return
        known, self._policy = self._policy, policy
        if policy not in ("noeviction", known):
            self.logger.warning(
                "Redis has maxmemory-policy %s and may evict locks: jobs that are running would count as stalled and "
                "run twice. Set it to noeviction.",
                policy,
            )
