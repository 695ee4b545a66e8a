from __future__ import annotations

from dramatiq_echomq import StalledChecker

from ..support.queue_data import put, state


def test_a_stalled_job_is_marked_and_then_brought_back(client):
    put(client, active=["a"], jobs={"a": {}})
    checker = StalledChecker(client)

    assert checker.check("q").marked == 1
    assert checker.check("q").recovered_ids == ("a",)

    after = state(client)
    assert after["wait"] == ["a"]
    assert "active" not in after
