"""EchoMQ for Dramatiq: jobs whose worker died come back by themselves."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .broker.broker import EchoMQBroker
    from .broker.in_flight import LockLost
    from .errors import (
        EchoMQError,
        JobFailed,
        JobNotFound,
        JobStalled,
        MessagesNotAdded,
        QueueNotFound,
        QueueRefused,
        ServerTooOld,
        SettingError,
    )
    from .inspection.history import QueueHistory, Stall
    from .inspection.inspector import QueueInspector
    from .inspection.records import ActionResult, JobDetails, JobPage, QueueInfo
    from .protocol.job_info import JobInfo
    from .protocol.records import ActiveJob, FailedJob, JobVerdict, QueueCounts, StalledCheck, StalledHold
    from .recovery.checker import StalledChecker
    from .recovery.middleware import StalledCheckerMiddleware
    from .settings import Settings
    from .signals import StalledSignals

__version__ = "0.1.0"

__all__ = [
    "ActionResult",
    "ActiveJob",
    "EchoMQBroker",
    "EchoMQError",
    "FailedJob",
    "JobDetails",
    "JobFailed",
    "JobInfo",
    "JobNotFound",
    "JobPage",
    "JobStalled",
    "JobVerdict",
    "LockLost",
    "MessagesNotAdded",
    "QueueCounts",
    "QueueHistory",
    "QueueInfo",
    "QueueInspector",
    "QueueNotFound",
    "QueueRefused",
    "ServerTooOld",
    "SettingError",
    "Settings",
    "Stall",
    "StalledCheck",
    "StalledChecker",
    "StalledCheckerMiddleware",
    "StalledHold",
    "StalledSignals",
]

# Names are loaded when they are first used: the checker works without Dramatiq.
_HOMES = {
    "ActionResult": "inspection.records",
    "ActiveJob": "protocol.records",
    "EchoMQBroker": "broker.broker",
    "EchoMQError": "errors",
    "FailedJob": "protocol.records",
    "JobDetails": "inspection.records",
    "JobFailed": "errors",
    "JobInfo": "protocol.job_info",
    "JobNotFound": "errors",
    "JobPage": "inspection.records",
    "JobStalled": "errors",
    "JobVerdict": "protocol.records",
    "MessagesNotAdded": "errors",
    "LockLost": "broker.in_flight",
    "QueueCounts": "protocol.records",
    "QueueHistory": "inspection.history",
    "QueueInfo": "inspection.records",
    "QueueInspector": "inspection.inspector",
    "QueueNotFound": "errors",
    "QueueRefused": "errors",
    "ServerTooOld": "errors",
    "SettingError": "errors",
    "Settings": "settings",
    "Stall": "inspection.history",
    "StalledCheck": "protocol.records",
    "StalledHold": "protocol.records",
    "StalledChecker": "recovery.checker",
    "StalledCheckerMiddleware": "recovery.middleware",
    "StalledSignals": "signals",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
