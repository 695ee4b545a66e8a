"""What the inspector says of jobs: pages of them, and each by its id."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, replace

import pytest

from dramatiq_echomq import JobInfo, JobNotFound, QueueInspector
from dramatiq_echomq.protocol.job_info import FIELDS

from ..support.operator_data import MESSAGE_ID, message_data
from ..support.queue_data import NOW, key, put


def ids(jobs) -> list[str]:
    return [job.job_id for job in jobs]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("wait", ["next", "waits"]),
        ("active", ["runs"]),
        ("delayed", ["later"]),
        ("prioritized", ["urgent"]),
        ("waiting-children", ["parent"]),
        ("completed", ["done"]),
        ("failed", ["crashed", "old"]),
        ("paused", []),
    ],
)
def test_jobs_are_listed_by_state(busy, state, expected):
    page = busy.jobs("q", state)

    assert ids(page.jobs) == expected
    assert {job.state for job in page.jobs} <= {state}
    assert (page.total, page.next_offset) == (len(expected), None)


def test_a_job_says_all_that_it_knows(busy):
    runs = busy.jobs("q", "active").jobs[0]
    assert (runs.worker, runs.starts, runs.attempts, runs.stalls) == ("host:7", 2, 1, 1)
    assert runs.started_at == NOW - 9_000
    assert 0 < runs.lock_ttl <= 60_000

    foreign, waits = busy.jobs("q", "wait").jobs
    assert (waits.message_id, waits.args, waits.kwargs) == (MESSAGE_ID, ("a.png",), {"x": 2})
    assert (foreign.message_id, foreign.args, foreign.kwargs) == ("next", ({"path": 1},), {})

    old = busy.job("q", "old").job
    assert (old.reason, old.stacktrace, old.finished_at) == ("ValueError: x", ("line 1",), NOW - 4)
    assert busy.job("q", "later").job.due_at == NOW + 60_000
    assert busy.job("q", "done").job.return_value == "3"


def test_each_field_is_told_whatever_bytes_it_has(client):
    fields = {name: f"\\{name}\0".encode() + b"\xff\n" for name in FIELDS}
    some = dict(list(fields.items())[::2])
    empty = dict.fromkeys(FIELDS, b"")
    for job_id, its_fields in {b"\xff\0:1": fields, b"some": {**some, "data": b""}, b"empty": empty}.items():
        client.hset(key("q", job_id), mapping=its_fields)
        client.lpush("emq:q:wait", job_id)

    def texts(job: JobInfo) -> tuple[str, ...]:
        return (job.name, job.worker, job.reason, job.return_value, *job.stacktrace, job.parent_key, job.progress)

    def shown(*names: str) -> tuple[str, ...]:
        return tuple(f"\\{name}\0\\xff\n" if name else "" for name in names)

    whole, partly, hollow = QueueInspector(client).jobs("q", "wait").jobs
    assert whole.job_id == "\udcff\0:1"
    assert texts(whole) == shown("name", "pb", "failedReason", "returnvalue", "stacktrace", "parentKey", "progress")
    assert (whole.data, whole.args) == (fields["data"], None)
    assert texts(partly) == shown("name", "pb", "failedReason", "", "stacktrace", "", "")
    assert (partly.data, partly.deduplication_id) == (b"", "")
    assert texts(hollow) == ("",) * 6
    for job in (whole, partly, hollow):
        assert job.message_id == job.job_id


@pytest.mark.parametrize("data", [message_data(x=[]), '{"a": 1}', "[" * 30_000, "\x80", "", "x" * 70_000])
def test_a_record_whose_data_nobody_has_read_is_like_one_that_was_made_with_it(client, data):
    put(client, wait=["a"], jobs={"a": {"data": data}})

    def look() -> JobInfo:
        (job,) = QueueInspector(client).jobs("q", "wait").jobs
        return job

    made = JobInfo(**asdict(look()))

    assert look() == made
    assert repr(look()) == repr(made)
    for treat in (copy.copy, copy.deepcopy, lambda job: pickle.loads(pickle.dumps(job)), replace):
        assert treat(look()) == made


def test_pages_follow_each_other(client):
    put(client, wait=[str(number) for number in range(25)], jobs={str(number): {} for number in range(25)})
    inspector, offset, seen = QueueInspector(client), 0, []
    while offset is not None:
        page = inspector.jobs("q", "wait", offset=offset, limit=10)
        seen += ids(page.jobs)
        offset = page.next_offset

    assert seen == [str(number) for number in reversed(range(25))]


def test_a_text_is_looked_for_in_names_data_and_reasons(busy):
    assert ids(busy.jobs("q", "failed", text="valueERROR").jobs) == ["old"]
    assert ids(busy.search("q", "wait", "A.PNG")) == ["waits"]
    assert ids(busy.search("q", "wait", "work")) == ["next", "waits"]
    assert ids(busy.search("q", "failed", "%a")) == []


def test_a_search_goes_through_any_number_of_jobs(client):
    numbers = range(2_500)
    put(client, failed={str(number): number + 1 for number in numbers}, jobs={str(number): {} for number in numbers})

    assert ids(QueueInspector(client).search("q", "failed")) == [str(number) for number in reversed(numbers)]


def test_a_job_is_found_by_its_id_and_by_that_of_its_message(busy):
    assert ids(busy.find("q", "waits")) == ids(busy.find("q", MESSAGE_ID)) == ["waits"]


def test_a_message_has_a_job_for_each_time_it_was_enqueued(client):
    jobs = {name: {"data": message_data(), "timestamp": str(at)} for at, name in enumerate(("first", "second"), 1)}
    jobs["other"] = {"data": message_data("another", args=(MESSAGE_ID,)), "timestamp": "9"}
    put(client, jobs=jobs, completed={"first": 1}, wait=["second", "other"])

    assert ids(QueueInspector(client).find("q", MESSAGE_ID)) == ["second", "first"]


def test_a_message_with_large_arguments_is_found(client):
    large = message_data(args=("x" * 100_000,))
    put(client, jobs={"a": {"data": large}, "b": {"data": large.replace(MESSAGE_ID, "b")}}, wait=["a", "b"])

    assert ids(QueueInspector(client).find("q", MESSAGE_ID)) == ["a"]
    listed = QueueInspector(client).jobs("q", "wait").jobs[0]
    assert (listed.data, listed.args, listed.data_size) == (None, None, len(large.replace(MESSAGE_ID, "b")))
    assert QueueInspector(client).job("q", "a").job.args == ("x" * 100_000,)


@pytest.mark.parametrize("field", ["data", "returnvalue"])
@pytest.mark.parametrize("state", ["wait", "failed"])
def test_one_call_reads_no_more_than_some_large_jobs(client, state, field):
    names = [f"j{number:02}" for number in range(12)]
    jobs = {name: {field: "x" * 1_500_000} for name in names}
    put(client, jobs=jobs, **{state: names if state == "wait" else {name: at for at, name in enumerate(names)}})
    inspector, seen, offset = QueueInspector(client), [], 0

    while offset is not None:
        page = inspector.jobs("q", state, offset=offset, limit=12)
        assert (len(page.jobs), page.total) == (3, 12)
        seen += ids(page.jobs)
        offset = page.next_offset

    assert seen == names[::-1]
    assert ids(inspector.search("q", state)) == seen
    assert ids(inspector.search("q", state, "J00")) == ["j00"]


def test_one_job_has_its_log_its_marks_and_its_places(client):
    put(client, jobs={"a": {}}, active=["a"], wait=["a"], stalled={"a"}, **{"a:logs": ["one", "two"]})
    client.sadd("emq:q:a:dependencies", "emq:x:1", "emq:x:2")

    details = QueueInspector(client).job("q", "a")

    assert (details.states, details.marked, details.log) == (("active", "wait"), True, ("one", "two"))
    assert details.children_left == 2


def test_odd_jobs_break_nothing(client):
    fields = {"opts": "[", "stc": "many", "timestamp": "soon", "priority": "1e999", "stacktrace": "plain", "data": "{"}
    put(client, jobs={"odd": fields}, wait=["odd", "ghost", "text", b"\xff"], text="x")
    client.hset("emq:q:lost", "data", "{}")

    jobs = {job.job_id: job for job in QueueInspector(client).jobs("q", "wait").jobs}

    assert (jobs["odd"].opts, jobs["odd"].stalls, jobs["odd"].added_at, jobs["odd"].args) == ({}, 0, None, None)
    assert jobs["odd"].stacktrace == ("plain",)
    assert jobs["ghost"].state == jobs["text"].state == jobs["\udcff"].state == "missing"
    assert QueueInspector(client).job("q", "lost").job.state == "nowhere"
    assert QueueInspector(client).job("q", "ghost").job.state == "missing"


@pytest.mark.parametrize("delay", ["1e300", "1e999", "-1e999", "NaN", '"soon"'])
@pytest.mark.parametrize("score", [float("inf"), 2.0**75, 4096.0, 0.0, -float("inf")])
def test_a_job_of_any_delay_breaks_no_look(client, command, score, delay):
    job = {"opts": f'{{"delay": {delay}}}', "delay": delay, "timestamp": str(NOW)}
    put(client, jobs={"a": job, "b": job}, delayed={"a": score}, wait=["b"], meta={"version": "echomq:1"})
    due = max(min(score / 4096, 2**53), 0)
    inspector = QueueInspector(client)

    assert inspector.queue("q").next_due == (due or None)
    assert [job.due_at for job in inspector.jobs("q", "delayed").jobs] == [due]
    for words in (["status"], ["jobs", "q"], ["explain", "q", "a"], ["explain", "q", "b"]):
        assert command(*words).code == 0


@pytest.mark.parametrize("name", ["meta", "nothing", "active", ""])
def test_what_is_no_job_is_not_found(busy, name):
    with pytest.raises(JobNotFound, match="queue 'q' has no job"):
        busy.job("q", name)
