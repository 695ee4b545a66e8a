from __future__ import annotations

from collections.abc import Iterable

from dramatiq import Broker

from ..settings import Settings
from .beside import settings_of


def announcement(broker: Broker, settings: Settings, queue_names: Iterable[str], *, looks_for_crashes: bool) -> str:
    """Say what a worker checks, how often, and how soon a job is back.

    Parameters:
      broker(Broker)
      settings(Settings): Those of the checks.
      queue_names(Iterable[str])
      looks_for_crashes(bool): Whether the worker looks for others that were killed.
    """
    interval = settings.stalled_interval / 1000
    names = ", ".join(f"{settings.prefix}:{name}" for name in queue_names) or "queues declared later"
    if settings.report_only:
        return f"Reporting stalled jobs every {interval:g} s, recovering none: {names}.{_whose(broker, settings)}"
    rounds = 3 if settings.max_recovered_share else 2  # one marks, one may be held, one recovers
    lock = settings.lock_duration / 1000
    back = f"{lock + rounds * interval:g} s"
    own = settings_of(broker)
    if looks_for_crashes and own is not None and own.crash_detection:
        back = f"about {settings.crash_grace / 1000 + 2:g} s, of a lost host within {back}"
    return (
        f"Checking for stalled jobs every {interval:g} s: {names}. "
        f"A job of a killed worker is back within {back} (for locks of {lock:g} s).{_whose(broker, settings)}"
    )


def _whose(broker: Broker, settings: Settings) -> str:
    """Say whose jobs these are where one might think that they are the broker's."""
    own = settings_of(broker)
    if own is not None and own.prefix == settings.prefix:
        return ""
    return (
        f" These are the jobs of EchoMQ and BullMQ programs under {settings.prefix}: "
        f"the messages of this {type(broker).__name__} are not among them."
    )
