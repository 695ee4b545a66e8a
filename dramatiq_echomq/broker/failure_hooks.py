from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from dramatiq import Broker, MessageProxy, Middleware
from dramatiq.middleware import AgeLimit, Retries, ShutdownNotifications, SkipMessage, TimeLimit

from ..errors import JobFailed

#: Middleware of Dramatiq that guards the thread that runs an actor, or says whether to run it.
#: Nothing is run here, and Retries would enqueue the message again.
NOT_TOLD = (AgeLimit, Retries, ShutdownNotifications, TimeLimit)

#: What a hook may raise because a server is away: it is called again when that is over.
OUTAGES = (redis.ConnectionError, redis.TimeoutError)


def tell_failure(broker: Broker, message: MessageProxy, error: JobFailed) -> None:
    """Make the failure of a job that was not run a failure as Dramatiq knows it: its
    middleware hears what it hears when an actor raises an error and has no
    retries left, each hook once.

    * ``before_process_message``, without which metrics would count down what
      they did not count up, and error trackers have nothing to close;
    * ``after_process_message`` with the error, where the one before did not
      raise: ``on_failure`` callbacks, error trackers, dashboards;
    * ``on_retry_exhausted`` of the actor, for Retries;
    * ``before_nack`` and ``after_nack``: results, and counts of dead messages.

    A process that does not have the actor calls the last two only, since the
    others may ask for it.  What a hook raises is logged, as Dramatiq does it.

    Parameters:
      broker(Broker)
      message(MessageProxy)
      error(JobFailed)

    Raises:
      redis.RedisError: When a hook has found its server away.
    """
    tell_processed(broker, message, error)
    tell_nacked(broker, message)


def tell_nacked(broker: Broker, message: MessageProxy, nack: Callable[[Any], Any] | None = None) -> None:
    """Tell the middleware that a message is nacked.

    Parameters:
      broker(Broker)
      message(MessageProxy)
      nack(Callable): What nacks it, for a job that is not failed yet.

    Raises:
      redis.RedisError: When a hook has found its server away.
    """
    for middleware in broker.middleware:
        _call(broker, middleware, "before_nack", message)
    if nack is not None:
        nack(message)
    for middleware in reversed(broker.middleware):
        _call(broker, middleware, "after_nack", message)


def tell_processed(broker: Broker, message: MessageProxy, error: JobFailed) -> None:
    """Tell the middleware that a message was processed and raised an error, if its
    actor is known, and fail it.

    Raises:
      redis.RedisError: When a hook has found its server away.
    """
    if message.actor_name in broker.actors:
        _call_hooks_of_processing(broker, message, error)
    message.fail()
    message.stuff_exception(error)


def _call_hooks_of_processing(broker: Broker, message: MessageProxy, error: JobFailed) -> None:
    told = [middleware for middleware in broker.middleware if not isinstance(middleware, NOT_TOLD)]
    told = [middleware for middleware in told if _call(broker, middleware, "before_process_message", message)]
    message.fail()
    message.stuff_exception(error)
    try:
        raise error  # hooks ask for the error that is being handled
    except JobFailed:
        for middleware in reversed(broker.middleware):
            if isinstance(middleware, Retries):
                _call_function(broker, middleware, _send_retry_exhausted, broker, middleware, message, error)
            elif middleware in told:
                _call(broker, middleware, "after_process_message", message, exception=error)
    finally:
        error.__traceback__ = None  # it would show this function, and no actor's


def _send_retry_exhausted(broker: Broker, retries: Retries, message: MessageProxy, error: JobFailed) -> None:
    """What Retries does with a message that has no retries left."""
    options, actor_options = message.options, broker.get_actor(message.actor_name).options
    throws = options.get("throws") or actor_options.get("throws")
    target = options.get("on_retry_exhausted") or actor_options.get("on_retry_exhausted")
    if target and not (throws and isinstance(error, throws)):
        max_retries = options.get("max_retries", actor_options.get("max_retries", retries.max_retries))
        numbers = {"retries": options.get("retries", 0), "max_retries": max_retries}
        broker.get_actor(target).send(message.asdict(), numbers)


def _call(broker: Broker, middleware: Middleware, hook: str, message: MessageProxy, **kwargs: Any) -> bool:
    """Call a hook of a middleware and return whether it raised nothing."""
    return _call_function(broker, middleware, getattr(middleware, hook), broker, message, **kwargs)


def _call_function(
    broker: Broker, middleware: Middleware, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> bool:
    try:
        function(*args, **kwargs)
    except SkipMessage:  # the message is not to be run, and it is not
        return False
    except OUTAGES:
        raise
    except Exception:
        broker.logger.critical("Unexpected failure in %s of %r.", function.__name__, middleware, exc_info=True)
        return False
    return True
