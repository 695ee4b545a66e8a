"""Queues as an operator meets them, as plain data."""

from __future__ import annotations

import json

from dramatiq_echomq.inspection.doctor.doctor import QueueDoctor
from dramatiq_echomq.inspection.doctor.findings import Finding

from .queue_data import NOW, put

#: What `message_data` says unless told otherwise.
MESSAGE_ID = "0b8e1a5c-6d70-4a53-9f4e-8b6fd4cfa4b1"


def message_data(message_id: str = MESSAGE_ID, *, args=(1,), **kwargs) -> str:
    """One of Dramatiq's messages, as a job's data."""
    message = {
        "queue_name": "q",
        "actor_name": "work",
        "args": list(args),
        "kwargs": kwargs,
        "options": {},
        "message_id": message_id,
        "message_timestamp": NOW,
    }
    return json.dumps(message, separators=(",", ":"))


def put_busy_queue(client) -> None:
    """A queue ``q`` with a job in each state."""
    put(
        client,
        jobs={
            "waits": {"data": message_data(args=("a.png",), x=2), "timestamp": str(NOW)},
            "next": {"data": '{"path": 1}', "timestamp": str(NOW - 5_000)},
            "runs": {"processedOn": str(NOW - 9_000), "pb": "host:7", "ats": "2", "atm": "1", "stc": "1"},
            "later": {"opts": '{"delay": 60000}', "delay": "60000", "timestamp": str(NOW)},
            "urgent": {"priority": "1", "timestamp": str(NOW - 7_000)},
            "done": {"returnvalue": "3", "finishedOn": str(NOW - 1), "processedOn": str(NOW - 2)},
            "old": {"failedReason": "ValueError: x", "finishedOn": str(NOW - 4), "stacktrace": '["line 1"]'},
            "crashed": {
                "failedReason": "job stalled more than allowable limit",
                "stc": "2",
                "finishedOn": str(NOW - 3),
            },
            "parent": {"timestamp": str(NOW)},
        },
        locks=["runs"],
        wait=["waits", "next"],
        active=["runs"],
        delayed={"later": (NOW + 60_000) * 4096},
        prioritized={"urgent": 2**32 + 1},
        completed={"done": NOW - 1},
        failed={"old": NOW - 4, "crashed": NOW - 3},
        waiting_children={"parent": NOW},
        meta={"version": "echomq:1"},
    )


def repaired(doctor: QueueDoctor) -> list[Finding]:
    """Look, repair, and return what was found; a second look finds nothing."""
    findings = doctor.examine("q")
    for finding in findings:
        doctor.repair("q", finding)
    assert [finding for finding in doctor.examine("q") if finding.is_repairable] == []
    return findings
