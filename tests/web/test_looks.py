"""Every page shows what there is, and changes nothing."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq.protocol.job_info import STATES

from ..support.operator_data import MESSAGE_ID, message_data, put_busy_queue
from ..support.pages import job_path, text_of
from ..support.queue_data import META, NOW, dump, put

pytestmark = pytest.mark.usefixtures("clock")


def put_stalls(client) -> None:
    """Jobs ``back`` and ``gone`` of a queue ``q``, which a worker held that died."""
    since, at = "2023-11-14T22:12:00.000Z", "2023-11-14T22:13:10.000Z"
    outcome = {"back": "back to wait", "gone": "failed: job stalled more than allowable limit"}
    for seq, (job_id, told) in enumerate(outcome.items(), 1):
        client.rpush(f"emq:q:{job_id}:logs", f"{at} stall 1 of at most 1: held by host:7 since {since}, {told}")
        client.xadd("emq:q:events", {"event": "stalled", "jobId": job_id}, id=f"{NOW - 10_000}-{seq}")
    failed = {"event": "failed", "jobId": "gone", "prev": "active", "failedReason": outcome["gone"][8:]}
    client.xadd("emq:q:events", failed, id=f"{NOW - 10_000}-3")


def test_all_queues_are_shown_with_their_states_and_what_is_wrong(client, pages):
    put_busy_queue(client)
    put(client, "other", wait=["x"], jobs={"x": {}}, meta={"version": "echomq:1", "paused": "1"})

    page = pages.get("/")
    said = text_of(page)

    for told in ("2 wait", "1 active", "1 delayed", "1 prioritized", "2 failed", "waits 7.0 s", "runs 9.0 s"):
        assert told in said
    assert "other paused no worker" in said
    assert 'aria-label="1 delayed, 1 waiting-children, 1 prioritized, 2 wait, 1 active, 2 failed"' in page


def test_the_last_hour_is_what_has_finished_in_it(client, pages):
    finished = {f"c{n}": NOW - n * 60_000 for n in range(90)}
    put(client, wait=["w"], jobs={"w": {}}, completed=finished, failed={"f": NOW}, meta=META)

    assert "60 done, 1 failed" in text_of(pages.get("/"))


def test_where_finished_jobs_are_not_kept_the_last_hour_says_at_least(client, pages):
    put(client, wait=["w"], jobs={"w": {}}, completed={"c": NOW}, meta=META)

    assert "at least 1 done" in text_of(pages.get("/"))


def test_what_workers_have_counted_is_in_the_last_hour(client, pages):
    counted = {"count": "30", "prevTS": str(NOW), "prevCount": "20"}
    put(client, wait=["w"], jobs={"w": {}}, completed={"c": NOW}, meta=META)
    client.hset("emq:q:metrics:completed", mapping=counted)
    client.rpush("emq:q:metrics:completed:data", 5, 0, *[1] * 200)

    assert "72 done" in text_of(pages.get("/"))  # 10 in this minute, 5, 0, and 57 more


def test_no_queue_at_all(pages):
    assert "There is no queue under the prefix emq" in text_of(pages.get("/"))


def test_stalls_are_told_by_worker(client, pages):
    put_busy_queue(client)
    put_stalls(client)

    said = text_of(pages.get("/stalls"))

    assert "host:7 was gone or frozen: 2 jobs stalled, 1 failed for good" in said
    assert "back of q , held for 1 min 10 s: brought back to wait" in said
    assert "gone of q , held for 1 min 10 s: failed, job stalled more than allowable limit" in said
    assert "1 job brought back" in said
    assert "1 job stalled too often and failed" in said
    assert "2 stalls, the last 10 s ago" in text_of(pages.get("/"))
    assert "host:7 was gone or frozen" in text_of(pages.get("/queues/q"))


def test_without_stalls_it_says_so(client, pages):
    put_busy_queue(client)

    assert "No job has stalled" in text_of(pages.get("/stalls"))


@pytest.mark.parametrize(
    ("state", "job_id", "told"),
    [
        ("wait", "waits", 'work("a.png", x=2)'),
        ("active", "runs", "host:7"),
        ("delayed", "later", "in 1 min"),
        ("prioritized", "urgent", "7.0 s"),
        ("waiting-children", "parent", "parent"),
        ("completed", "done", "1 ms"),
        ("failed", "old", "ValueError: x"),
    ],
)
def test_a_queue_lists_its_jobs_by_state(client, pages, state, job_id, told):
    put_busy_queue(client)

    said = text_of(pages.get(f"/queues/q?state={state}"))

    assert job_id in said
    assert told in said


def test_every_state_has_a_list_and_a_tab(client, pages):
    put_busy_queue(client)
    for state in STATES:
        assert f'aria-current="page"><i class="dot s-{state}"' in pages.get(f"/queues/q?state={state}")


def test_a_list_goes_on_for_pages_and_back(client, pages):
    ids = [f"j{n:03}" for n in range(120)]
    put(client, wait=ids, jobs={job_id: {} for job_id in ids}, meta=META)

    first, second, last = (pages.get(f"/queues/q?state=wait&offset={offset}") for offset in (0, 50, 100))

    assert "Jobs 1 to 50 of 120" in text_of(first)
    assert "offset=50" in first
    assert "j119" in first
    assert "Jobs 51 to 100 of 120" in text_of(second)
    assert 'rel="prev" href="/queues/q?state=wait"' in second
    assert "Jobs 101 to 120 of 120" in text_of(last)
    assert 'rel="next"' not in last


def test_a_list_can_be_filtered_by_a_text(client, pages):
    put_busy_queue(client)

    said = text_of(pages.get("/queues/q?state=wait&text=A.PNG"))

    assert "waits" in said
    assert "next" not in said.split("Stalls")[1]
    assert "1 shown" in said
    assert "None of the jobs looked at has this text" in text_of(pages.get("/queues/q?state=wait&text=nothing"))


def test_a_job_is_shown_with_all_that_is_known(client, pages):
    trace = ["Traceback 1", 'Traceback 2\n  File "x.py", line 1\nValueError: <b>']
    put(
        client,
        jobs={
            "j": {
                "data": message_data(args=({"path": "/a"},), width=640),
                "opts": '{"attempts": 7}',
                "processedOn": str(NOW - 60_000),
                "finishedOn": str(NOW - 50_000),
                "timestamp": str(NOW - 90_000),
                "failedReason": "ValueError: <b>",
                "stacktrace": json.dumps(trace),
                "pb": "host:7",
                "ats": "3",
                "atm": "2",
                "stc": "1",
            }
        },
        failed={"j": NOW - 50_000},
        meta=META,
    )
    stall = "2023-11-14T22:12:05.000Z stall 1 of at most 1: held by host:5, back to wait"
    client.rpush("emq:q:j:logs", "opened the file", stall)

    page = pages.get(job_path("j"))
    said = text_of(page)

    for told in (
        MESSAGE_ID,
        '"path": "/a"',
        "width 640",
        "In failed for 50 s",
        "fetched by host:7 (for the 3rd time)",
        "stall 1 of at most 1: held by host:5",
        "opened the file",
        "1 earlier stack trace",
        "ValueError: <b>",
        '"attempts": 7',
        "Took 10 s",
        "dramatiq-echomq retry q j",
    ):
        assert told in said
    assert "ValueError: &lt;b&gt;" in page


def test_an_active_job_without_a_lock_says_what_the_next_check_does(client, pages):
    put(client, active=["j"], jobs={"j": {"processedOn": str(NOW)}}, stalled={"j"}, meta=META)

    said = text_of(pages.get(job_path("j")))

    assert "The next check brings it back to wait" in said
    assert "Lock none , marked" in said


def test_data_that_is_no_json_is_shown_as_it_is(client, pages):
    put(client, wait=["j"], jobs={"j": {"data": b"\x80\x04pickled"}}, meta=META)

    assert r"\x80\x04pickled" in text_of(pages.get(job_path("j"))).replace("\x04", r"\x04")


def test_a_job_is_found_by_either_id(client, pages):
    put_busy_queue(client)

    for any_id in ("waits", MESSAGE_ID):
        assert pages.client.get("/queues/q/find", query_string={"id": any_id}).location == job_path("waits")
    assert "no job 'nobody'" in text_of(pages.get("/queues/q/find?id=nobody", 404))


def test_all_jobs_of_a_message_are_found(client, pages):
    jobs = {"a": {"data": message_data()}, "b": {"data": message_data()}}
    put(client, wait=["a"], completed={"b": NOW}, jobs=jobs, meta=META)

    said = text_of(pages.get(f"/queues/q/find?id={MESSAGE_ID}"))

    assert "It was enqueued 2 times" in said
    assert "wait" in said
    assert "completed" in said


def test_a_look_at_anything_changes_nothing(client, pages):
    put_busy_queue(client)
    put_stalls(client)
    before = dump(client)

    for path in ("/", "/stalls", "/queues/q", "/queues/q/jobs", "/queues/Q", "/queues/none/jobs/x", job_path("runs")):
        pages.client.get(path)
        pages.client.head(path)
    for state in STATES:
        pages.get(f"/queues/q?state={state}&text=x")
    pages.get("/queues/none/find?id=x", 404)

    assert dump(client) == before
