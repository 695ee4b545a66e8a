"""What the verbs that look answer, to people and to programs. They write nothing."""

from __future__ import annotations

import json
import re

import pytest

from dramatiq_echomq.cli import main

from ..support.operator_data import MESSAGE_ID, put_busy_queue
from ..support.queue_data import dump, put

LOOKS = [
    ("status",),
    ("status", "q"),
    ("jobs", "q"),
    ("jobs", "q", "--state", "failed", "--grep", "value"),
    ("inspect", "q"),
    ("explain", "q", "runs"),
    ("explain", "q", MESSAGE_ID),
    ("check", "q", "--dry-run"),
    ("doctor", "q"),
]


@pytest.mark.usefixtures("worker_of_q")
@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
@pytest.mark.parametrize("answer", [(), ("--json",)], ids=["people", "programs"])
def test_a_look_writes_nothing(client, command, look, answer):
    put_busy_queue(client)
    before = dump(client)

    done = command(*look, *answer)

    assert (done.code, done.err) == (0, "")
    assert dump(client) == before
    if answer:
        assert json.loads(done.out) or look[0] == "doctor"


def test_status_shows_every_queue(client, command):
    put_busy_queue(client)
    put(client, "mails", wait=["a"], jobs={"a": {}}, meta={"paused": "1"})

    heading, mails, q = command("status").out.splitlines()

    assert heading.split()[:7] == ["queue", "state", "wait", "active", "delayed", "failed", "completed"]
    assert mails.split()[:7] == ["mails", "paused", "1", "0", "0", "0", "0"]
    assert q.split()[:8] == ["q", "no", "worker", "3", "1", "1", "2", "1"]


def test_status_as_data(client, command):
    put_busy_queue(client)

    (queue,) = command("status", "--json").data

    assert queue["name"] == "q"
    assert queue["counts"]["failed"] == 2
    assert queue["oldest_active"]["job_id"] == "runs"
    assert queue["workers"] == []


def test_status_of_nothing_says_so(command):
    assert command("status").out == (
        "There is no queue under the prefix 'emq' in this database: one is there from its first job on. "
        "Or look at --url and --prefix.\n"
    )
    assert command("status", "--json").data == []


def test_a_watch_of_nothing_says_so(command, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dramatiq_echomq.cli.status.time.sleep", interrupt)
    assert "There is no queue under the prefix 'emq'" in command("status", "--watch").out


@pytest.mark.parametrize(
    ("meta", "more", "expected"),
    [
        ({"concurrency": "1"}, {"active": ["a"]}, "full (1 at once)"),
        ({"max": "1"}, {"limiter": "1"}, "rate limit, "),
        ({"concurrency": "2"}, {"active": ["a"]}, "running"),
    ],
)
@pytest.mark.usefixtures("worker_of_q")
def test_status_says_why_nothing_starts(client, command, meta, more, expected):
    put(client, jobs={"a": {}}, meta=meta, **more)
    client.pexpire("emq:q:limiter", 60_000)

    assert expected in command("status").out


@pytest.mark.parametrize(
    ("jobs", "expected"), [({"wait": ["a"]}, "no worker"), ({"active": ["a"]}, "no worker"), ({}, "running")]
)
def test_status_says_that_nobody_runs_the_jobs_there_are(client, command, jobs, expected):
    put(client, jobs={"a": {}}, meta={"version": "echomq:1"}, **jobs)

    assert expected in command("status").out


def test_jobs_are_listed_as_data(client, command):
    put_busy_queue(client)

    listed = command("jobs", "q", "--state", "wait", "--state", "failed", "--json").data

    assert [(job["job_id"], job["state"]) for job in listed] == [
        ("next", "wait"),
        ("waits", "wait"),
        ("crashed", "failed"),
        ("old", "failed"),
    ]
    assert (listed[1]["message_id"], listed[1]["args"], listed[1]["kwargs"]) == (MESSAGE_ID, ["a.png"], {"x": 2})


def test_jobs_show_arguments_and_both_ids(client, command):
    put_busy_queue(client)

    out = command("jobs", "q").out

    (line,) = (line for line in out.splitlines() if " waits " in line)
    assert MESSAGE_ID in line
    assert '"a.png", x=2' in line
    assert "done" not in out


def test_what_is_left_out_is_counted(client, command):
    names = [str(number) for number in range(30)]
    put(client, wait=names, jobs={name: {} for name in names})

    assert "… and 10 more wait: see --limit" in command("jobs", "q").out
    assert "There are no such jobs in queue 'q'." in command("jobs", "q", "--grep", "zzz").out


@pytest.mark.parametrize("limit", [1_000, 1_001, 1_200, 5_000])
def test_as_many_jobs_are_listed_as_are_wanted(client, command, limit):
    names = [str(number) for number in range(1_200)]
    put(client, wait=names)

    listed = command("jobs", "q", "--limit", str(limit), "--json").data

    assert [job["job_id"] for job in listed] == names[::-1][:limit]


def test_whatever_is_in_a_job_stays_on_its_line_and_is_no_markup(client, command):
    odd = {"name": "[red]a\x1b[31m\nb[/]", "data": '{"args":["\\u001b[2J"],"kwargs":{}}', "failedReason": "x\x07"}
    put(client, failed={"[bold]": 1}, jobs={"[bold]": odd})

    for words in (("jobs", "q"), ("explain", "q", "[bold]")):
        out = command(*words).out
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "[bold]" in out
        assert "[red]a" in out


def test_inspect_exits_with_1_when_a_job_has_no_lock(client, command):
    put(client, active=["b", "a"], jobs={"a": {"pb": "host:1", "stc": "1"}, "b": {}}, locks=["b"], stalled={"a"})

    done = command("inspect", "q")
    assert done.code == 1
    assert "fail: stalled too often" in done.out
    assert "healthy: its lock is held" in done.out
    listed = command("inspect", "q", "--json").data
    assert [(job["job_id"], job["verdict"]) for job in listed] == [("a", "fail"), ("b", "healthy")]
    assert command("inspect", "q", "--max-stalled-count", "9", "--json").data[0]["verdict"] == "requeue"


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("look", [("jobs", "q"), ("inspect", "q")], ids=" ".join)
def test_many_rows_are_lines_that_say_what_a_table_does(client, command, monkeypatch, look):
    put_busy_queue(client)
    odd = {"pb": "[red]x\n", "name": "工作", "data": '["' + "é" * 80 + '", 1.5]', "stc": "12345"}
    put(client, active=["odd"], jobs={"odd": odd})
    client.persist("emq:q:runs:lock")  # a time that is left would be less at the second look

    def words() -> list[list[str]]:
        return [re.split(r"  +", line.strip()) for line in command(*look).out.splitlines()]

    table = words()
    monkeypatch.setattr("dramatiq_echomq.cli.tables.MOST_ROWS", 1)

    assert words() == table
    assert len(table) > 2


#: What a user needs who only looks; with +client|list as well workers are seen, with +info the server is looked at.
READING_RIGHTS = "~emq:* +@read +eval +evalsha +time"


@pytest.mark.parametrize("look", [*LOOKS, ("jobs", "q", "--grep", "x")], ids=" ".join)
def test_a_user_who_may_only_read_can_look(client, capsys, redis_url, look):
    put_busy_queue(client)
    client.script_flush()
    client.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">pass", *READING_RIGHTS.split())
    try:
        code = main([*look, "--url", redis_url.replace("://", "://reader:pass@")])
        said = capsys.readouterr()
        assert (code, said.err) == (0, "")
    finally:
        client.acl_deluser("reader")


@pytest.mark.parametrize("act", [("pause", "q"), ("retry", "q", "--all"), ("remove", "q", "waits"), ("check", "q")])
def test_a_user_who_may_only_read_is_told_what_is_missing(client, capsys, redis_url, act):
    put_busy_queue(client)
    before = dump(client)
    client.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">pass", *READING_RIGHTS.split())
    try:
        assert main([*act, "--url", redis_url.replace("://", "://reader:pass@")]) == 4
        assert "ACL SETUSER reader +" in capsys.readouterr().err
        assert dump(client) == before
    finally:
        client.acl_deluser("reader")
