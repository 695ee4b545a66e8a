"""A stalled-out job beside middleware of others, as a Django project has it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ..support.environment import ENVIRONMENT
from ..support.servers import Server

PROGRAM = Path(__file__).parent.parent / "support" / "programs" / "third_party_app.py"
REASON = "job stalled more than allowable limit"


@pytest.mark.at_once
def test_django_dramatiq_sentry_and_dramatiq_abort_know_that_a_job_stalled_out():
    with Server() as server, TemporaryDirectory() as directory:
        command = [sys.executable, str(PROGRAM), server.url, f"{directory}/db.sqlite3"]
        program = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)

    assert program.returncode == 0, program.stderr
    known = json.loads(program.stdout)
    assert sorted(known) == ["at_fetch", "at_fetch, cancelled", "by_sweep", "by_sweep, cancelled"]
    for job in known.values():
        assert job["django"] == "failed"
        assert job["django says"] == f"dramatiq_echomq.errors.JobStalled: {REASON}"
        assert job["sentry"] == [["work", "JobStalled", job["message"]]]
        assert job["abortable"] == []
    assert "it ran" not in program.stderr
    assert "Traceback" not in program.stderr
