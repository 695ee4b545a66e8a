from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from ..errors import EchoMQError
from ..protocol.logtext import on_one_line


class SchedulerStopped(EchoMQError):
    """A job scheduler whose next run this worker cannot work out."""


def next_run(pattern: str, time_zone: str | None, after: int) -> int:
    """When a cron pattern is due next.

    Parameters:
      pattern(str): Five fields, or six with the seconds first.
      time_zone(str): The zone in which the pattern counts; UTC without one.
      after(int): The time in ms after which to look.

    Returns:
      int: The time in ms.

    Raises:
      SchedulerStopped: When there is none, or the package for it is missing.
    """
    try:
        from croniter import croniter
    except ImportError:
        raise SchedulerStopped('cron patterns need a package: pip install "dramatiq-echomq[schedulers]"') from None
    try:
        zone = ZoneInfo(time_zone) if time_zone else timezone.utc
        begin = datetime.fromtimestamp(after / 1000, zone)
        due = croniter(pattern, begin, second_at_beginning=True).get_next(datetime)
    except Exception as error:
        raise SchedulerStopped(f"pattern {pattern!r} in time zone {time_zone!r}: {on_one_line(str(error))}") from None
    return int(due.timestamp() * 1000)
