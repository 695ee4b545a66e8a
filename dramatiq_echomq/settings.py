"""What can be set.  Every default stands here and nowhere else."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar

from .errors import SettingError, UnknownSetting
from .validation import require_milliseconds, require_prefix, require_share, require_whole_number

ENVIRONMENT_PREFIX = "DRAMATIQ_ECHOMQ_"
DJANGO_SETTING = "DRAMATIQ_ECHOMQ"

#: The least ms that are of use.  What is less was meant in seconds.
SHORTEST_LOCK = 100
SHORTEST_TTL = 1_000

#: Those that may be as short as anybody likes, and the ms below which they were probably meant in seconds.
OF_ANY_LENGTH = ("stalled_interval", "crash_grace")
SHORTEST_USUAL = 100

#: What is looked for among the settings and is none.
_CONNECTION = {"URL", "HOST", "PORT", "DB", "CLIENT", "USERNAME", "PASSWORD"}

#: What stands for a switch in the environment, and for None where None is the default.
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_NONE = {"", "none", "null"}


def _whole_number(default: int, *, minimum: int) -> Any:
    def check(name: str, value: Any, source: str) -> int:
        return require_whole_number(name, value, minimum=minimum, source=source)

    return _setting(default, check, _number_or_text)


def _milliseconds(default: int, *, minimum: int) -> Any:
    def check(name: str, value: Any, source: str) -> int:
        return require_milliseconds(name, value, minimum=minimum, source=source)

    return _setting(default, check, _number_or_text)


def _whole_number_or_none(*, minimum: int) -> Any:
    def check(name: str, value: Any, source: str) -> int | None:
        return None if value is None else require_whole_number(name, value, minimum=minimum, source=source)

    return _setting(None, check, _none_or(_number_or_text))


def _share_or_none() -> Any:
    def check(name: str, value: Any, source: str) -> float | None:
        return require_share(name, value, source=source)

    return _setting(None, check, _none_or(lambda written: _number_or_text(written, float)))


def _number_or_text(written: str, kind: type[Any] = int) -> Any:
    """Read a number; what is none stays text, for the check to name it."""
    try:
        return kind(written)
    except ValueError:
        return written


def _none_or(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda written: None if written.strip().lower() in _NONE else parse(written)


def _switch(default: bool) -> Any:
    def check(name: str, value: Any, source: str) -> bool:
        if not isinstance(value, bool):
            raise SettingError(name, source, value, "True or False (in the environment 1 or 0)")
        return value

    return _setting(default, check, lambda written: _SWITCH.get(written.strip().lower(), written))


def _prefix(default: str) -> Any:
    def check(name: str, value: Any, source: str) -> str:
        return require_prefix(value, source=source)

    return _setting(default, check, str)


def _setting(default: Any, check: Callable[[str, Any, str], Any], parse: Callable[[str], Any]) -> Any:
    return dataclasses.field(default=default, metadata={"check": check, "parse": parse})


@dataclasses.dataclass(frozen=True)
class Settings:
    """What can be set.  Each setting is looked up as a keyword argument, then
    in the environment (``DRAMATIQ_ECHOMQ_STALLED_INTERVAL``), then in Django's
    ``DRAMATIQ_ECHOMQ`` dictionary (``STALLED_INTERVAL``), then here.

    Parameters:
      prefix(str): What the keys of all queues begin with.
      stalled_interval(int): The ms between two checks of a queue.
      max_stalled_count(int): How often a job may stall and come back.
      batch_size(int): How many ids one script call looks at, at most.
      max_recovered_share(float): The share of the active jobs, above 0 and up
        to 1, that a check may recover at once.  One that would recover more
        does nothing for one round.  None for any.
      report_only(bool): Whether checks only say what they would do.
      crash_detection(bool): Whether workers are seen to be gone when their
        connection to Redis closes.
      crash_grace(int): The ms for which it must stay closed.
      lock_duration(int): The ms after which a lock ends that is not renewed.
      keep_completed(int): How many completed jobs a queue keeps.
      keep_failed(int): How many failed jobs a queue keeps; None for all.
      dead_message_ttl(int): The ms for which failed jobs are kept.
      max_event_bytes(int): The longest result or reason that an event carries.
      metrics_max_data_points(int): For how many minutes BullMQ's own metrics
        are kept; 0 for none.

    Raises:
      SettingError: When one of these cannot be used.
    """

    sources: ClassVar[Mapping[str, str]] = {}  # where they came from, as far as they were looked up

    prefix: str = _prefix("emq")
    stalled_interval: int = _milliseconds(30_000, minimum=1)
    max_stalled_count: int = _whole_number(1, minimum=0)
    batch_size: int = _whole_number(1_000, minimum=1)
    max_recovered_share: float | None = _share_or_none()
    report_only: bool = _switch(False)
    crash_detection: bool = _switch(True)
    crash_grace: int = _milliseconds(3_000, minimum=1)
    lock_duration: int = _milliseconds(30_000, minimum=SHORTEST_LOCK)
    keep_completed: int = _whole_number(1_000, minimum=0)
    keep_failed: int | None = _whole_number_or_none(minimum=0)
    dead_message_ttl: int = _milliseconds(7 * 86_400_000, minimum=SHORTEST_TTL)
    max_event_bytes: int = _whole_number(10_000, minimum=100)
    metrics_max_data_points: int = _whole_number(0, minimum=0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            field.metadata["check"](field.name, getattr(self, field.name), "keyword argument")

    @classmethod
    def load(cls, *, source: str = "keyword argument", **keywords: Any) -> Settings:
        """Look up every setting.

        Parameters:
          source(str): What the keywords are to the user, for errors.
          **keywords: Settings by name; those that are None are looked up
            elsewhere.

        Raises:
          SettingError: For the first value that cannot be used, and for a
            setting that there is not, with where it came from.
        """
        fields = {field.name: field.metadata for field in dataclasses.fields(cls)}
        _require_known(keywords, fields, source)
        environment, django = _environment(set(fields)), _django_settings(set(fields))
        found: dict[str, tuple[Any, str]] = {}
        for name, field in fields.items():
            if keywords.get(name) is not None:
                found[name] = keywords[name], source
            elif name in environment:
                found[name] = field["parse"](environment[name]), f"environment variable {_variable_of(name)}"
            elif name in django:
                found[name] = django[name], f"Django setting {DJANGO_SETTING}[{name.upper()!r}]"
        values = {}
        for name, (value, where) in found.items():
            values[name] = _checked(name, value, where, fields[name]["check"])
        settings = cls(**values)
        object.__setattr__(settings, "sources", {name: where for name, (_, where) in found.items()})
        return settings

    def doubts(self) -> list[str]:
        """Return a line for each duration that may be meant, but is so short
        that it was probably meant in seconds.
        """
        return [
            f"{name} ({self.sources.get(name, 'where it was set is not known')}) is {value} ms, which is very short. "
            f"Durations are in ms: if {value} s are meant, it is {value * 1_000}."
            for name in OF_ANY_LENGTH
            if (value := getattr(self, name)) < SHORTEST_USUAL
        ]


def _checked(name: str, value: Any, source: str, check: Callable[[str, Any, str], Any]) -> Any:
    try:
        return check(name, value, source)
    except SettingError as error:
        if source.startswith("environment") and isinstance(value, str) and not value.strip():
            allowed = f"{error.allowed}; unset the variable to have the default"
            raise SettingError(error.name, error.source, error.value, allowed) from None
        raise


def _environment(known: set[str]) -> dict[str, str]:
    """Return the settings that the environment holds, by name."""
    variables = {name: text for name, text in os.environ.items() if name.startswith(ENVIRONMENT_PREFIX)}
    _require_known(variables, {_variable_of(name) for name in known}, "environment variable")
    return {name.removeprefix(ENVIRONMENT_PREFIX).lower(): text for name, text in variables.items()}


def _variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


def _django_settings(known: set[str]) -> dict[str, Any]:
    """Return Django's dictionary of settings, empty where Django is not in use."""
    django_conf = sys.modules.get("django.conf")
    if django_conf is None:
        return {}
    settings = django_conf.settings
    if not settings.configured and not os.environ.get("DJANGO_SETTINGS_MODULE"):
        return {}
    found = getattr(settings, DJANGO_SETTING, {})
    if not isinstance(found, Mapping):
        raise SettingError(DJANGO_SETTING, "Django setting", found, "a dictionary")
    _require_known(found, {name.upper() for name in known}, f"key of Django setting {DJANGO_SETTING}")
    return {name.lower(): value for name, value in found.items()}


def _require_known(names: Iterable[Any], known: Collection[str], source: str) -> None:
    for name in names:
        if name not in known:
            raise UnknownSetting(str(name), source, known, _hint_for(str(name), known))


def _hint_for(name: str, known: Collection[str]) -> str:
    """Return what to do instead, or nothing where the names that there are say it."""
    if name.removeprefix(ENVIRONMENT_PREFIX).upper() in _CONNECTION:
        where = "give EchoMQBroker or StalledCheckerMiddleware a url or a client"
        return f"how to connect is no setting: {where} (the command dramatiq-echomq reads REDIS_URL)"
    meant = name.upper().replace("NAMESPACE", "PREFIX")
    return f"did you mean {meant}?" if meant in known else ""
