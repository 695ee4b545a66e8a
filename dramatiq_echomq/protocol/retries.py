from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

T = TypeVar("T")

#: The errors of a connection, after which another one may do; before redis-py 8 those of the system as well.
BROKEN = (redis.ConnectionError, ConnectionError)
BROKEN_OR_SILENT = (*BROKEN, redis.TimeoutError, TimeoutError)

#: Those that another one gets as well.
NEVER_BETTER = (redis.AuthenticationError, redis.exceptions.AuthorizationError)

#: How often a command is sent again when that takes no time: with a connection refused, for 1.6 s.
MOST_RETRIES = 7

#: For how many seconds a command is sent again. A last try may begin within this time: a server that accepts
#: connections and never answers is given up after two timeouts of 5 s.
RESENDING = 6.0


class BoundedRetry(Retry):
    """Tries again for so many seconds at most: a refused connection takes no
    time, a server that does not answer takes a timeout.

    Parameters:
      seconds(float)
      errors(tuple): The errors after which to try again.
    """

    def __init__(self, seconds: float, errors: tuple[type[Exception], ...]) -> None:
        super().__init__(ExponentialBackoff(cap=0.5, base=0.01), MOST_RETRIES, errors)
        self.seconds = seconds

    def call_with_retry(self, do: Callable[[], T], fail: Callable[..., Any], *args: Any, **kwargs: Any) -> T:
        started = time.monotonic()

        def fail_for_good(error: Exception, *more: Any) -> None:
            fail(error, *more)
            if isinstance(error, NEVER_BETTER) or not self.seconds or time.monotonic() - started > self.seconds:
                raise error

        return super().call_with_retry(do, fail_for_good, *args, **kwargs)


def resending_parameters(seconds: float, errors: tuple[type[Exception], ...]) -> dict[str, Any]:
    """Return the parameters of connections that send commands again.  Before redis-py
    6, `retry_on_error` decides whether a command is, and `retry` how often.
    """
    return {"retry": BoundedRetry(seconds, errors), "retry_on_error": list(errors) if seconds else []}
