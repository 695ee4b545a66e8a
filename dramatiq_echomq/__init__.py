"""EchoMQ for Dramatiq: jobs whose worker died come back by themselves."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .broker import EchoMQBroker
    from .checker import ActiveJob, FailedJob, StalledCheck, StalledChecker
    from .errors import EchoMQError, JobStalled, QueueRefused, SettingError
    from .holdings import LockLost
    from .job_queue import QueueCounts
    from .middleware import StalledCheckerMiddleware
    from .settings import Settings
    from .signals import StalledSignals

__version__ = "0.1.0"

__all__ = [
    "ActiveJob",
    "EchoMQBroker",
    "EchoMQError",
    "FailedJob",
    "JobStalled",
    "LockLost",
    "QueueCounts",
    "QueueRefused",
    "SettingError",
    "Settings",
    "StalledCheck",
    "StalledChecker",
    "StalledCheckerMiddleware",
    "StalledSignals",
]

# Names are loaded when they are first used: the checker works without Dramatiq.
_HOMES = {
    "ActiveJob": "checker",
    "EchoMQBroker": "broker",
    "EchoMQError": "errors",
    "FailedJob": "checker",
    "JobStalled": "errors",
    "LockLost": "holdings",
    "QueueCounts": "job_queue",
    "QueueRefused": "errors",
    "SettingError": "errors",
    "Settings": "settings",
    "StalledCheck": "checker",
    "StalledChecker": "checker",
    "StalledCheckerMiddleware": "middleware",
    "StalledSignals": "signals",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
