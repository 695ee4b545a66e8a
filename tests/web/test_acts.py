"""Every button does what it says, and tells what came of it."""

from __future__ import annotations

import pytest

from ..support.operator_data import put_busy_queue
from ..support.pages import job_path
from ..support.queue_data import META, put, state

pytestmark = pytest.mark.usefixtures("clock")


def test_a_failed_job_is_retried(client, pages):
    put_busy_queue(client)

    said = pages.act_on_jobs("retry", "old", **{"from": "job"})

    assert "1 job back to wait: 'old'." in said
    assert "Job old" in said
    after = state(client)
    assert after["wait"] == ["old", "waits", "next"]
    assert set(after["failed"]) == {"crashed"}


def test_some_jobs_are_retried_and_the_rest_is_told(client, pages):
    put_busy_queue(client)

    said = pages.act_on_jobs("retry", "old", "crashed", "waits", "nobody", state="failed")

    assert "2 jobs back to wait: 'old', 'crashed'." in said
    assert "Not done to 'waits': it" in said
    assert "Not done to 'nobody': it" in said
    assert "No job of this queue is in failed" in said
    assert set(state(client)["wait"]) == {"waits", "next", "old", "crashed"}


def test_a_job_is_removed(client, pages):
    put_busy_queue(client)

    said = pages.act_on_jobs("remove", "waits", **{"from": "job"})

    assert "1 job removed: 'waits'." in said
    after = state(client)
    assert after["wait"] == ["next"]
    assert "waits" not in after


def test_a_job_that_runs_is_not_removed(client, pages):
    put_busy_queue(client)
    before = state(client)

    said = pages.act_on_jobs("remove", "runs", **{"from": "job"})

    assert "Not done to 'runs'" in said
    assert "Job runs" in said
    assert state(client) == before


def test_a_delayed_job_is_promoted(client, pages):
    put_busy_queue(client)

    assert "1 job made available now: 'later'." in pages.act_on_jobs("promote", "later")
    after = state(client)
    assert "later" in after["wait"]
    assert "delayed" not in after


def test_a_queue_is_paused_and_resumed(client, pages):
    put_busy_queue(client)

    assert "The queue is paused" in pages.act_on_queue("pause")
    assert state(client)["paused"] == ["waits", "next"]
    assert "Resume" in pages.get("/queues/q")
    assert "The queue is resumed" in pages.act_on_queue("resume")
    assert state(client)["wait"] == ["waits", "next"]


def test_a_queue_is_checked(client, pages):
    put(client, active=["j"], jobs={"j": {}}, meta=META)

    assert "Checked: 1 without a lock marked." in pages.act_on_queue("check")
    assert "Checked: 1 brought back ('j')." in pages.act_on_queue("check")
    assert state(client)["wait"] == ["j"]


def test_what_was_done_is_told_once(client, pages):
    put_busy_queue(client)
    pages.act_on_queue("pause")

    assert "The queue is paused, for" not in pages.get("/queues/q")


def test_no_job_chosen(client, pages):
    put_busy_queue(client)

    assert "No job was chosen." in pages.act_on_jobs("remove", state="wait")


@pytest.mark.parametrize(
    ("path", "fields", "told"),
    [
        ("/queues/q", {"action": "explode"}, "There is no action 'explode' on a queue"),
        ("/queues/q", {}, "There is no action '' on a queue"),
        ("/queues/q/jobs", {"action": "explode", "id": "old"}, "There is no action 'explode' on jobs"),
        ("/queues/q/jobs", {"action": "remove", "id": "a/b"}, "is not the address of a queue or a job"),
        ("/queues/q/jobs", {"action": "remove", "id": "ü"}, "is not the address of a queue or a job"),
    ],
)
def test_a_form_that_is_wrong_changes_nothing(client, pages, path, fields, told):
    put_busy_queue(client)
    before = state(client)

    answer = pages.post(path, "/queues/q", **fields)

    assert answer.status_code == 400
    assert told in answer.get_data(as_text=True).replace("&#39;", "'")
    assert state(client) == before


@pytest.mark.parametrize("action", ["pause", "resume", "check"])
def test_a_queue_that_is_not_there_is_never_created(client, pages, action):
    put_busy_queue(client)

    answer = pages.post("/queues/none", "/queues/q", action=action)

    assert answer.status_code == 404
    assert not client.keys("emq:none:*")


@pytest.mark.parametrize(
    ("job_id", "buttons"),
    [
        ("old", {"retry", "remove"}),
        ("later", {"promote", "remove"}),
        ("waits", {"remove"}),
        ("done", {"remove"}),
        ("runs", set()),
        ("parent", set()),
    ],
)
def test_a_job_has_the_buttons_that_do_something(client, pages, job_id, buttons):
    put_busy_queue(client)

    page = pages.get(job_path(job_id))

    assert {each for each in ("retry", "promote", "remove") if f'name="action" value="{each}"' in page} == buttons
