"""What the verbs that look answer, to people and to programs. They write nothing."""

from __future__ import annotations

import json

import pytest

from dramatiq_echomq import StalledChecker
from dramatiq_echomq.cli import main

from ..support.operator_data import MESSAGE_ID, put_busy_queue
from ..support.queue_data import NOW, dump, put

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


@pytest.mark.parametrize(
    "words",
    [
        ("status", "qq"),
        ("jobs", "qq"),
        ("inspect", "qq"),
        ("explain", "qq", "1"),
        ("check", "q", "qq"),
        ("retry", "qq", "--all"),
        ("retry", "qq", "1"),
        ("remove", "qq", "1"),
        ("promote", "qq", "1"),
        ("pause", "q", "qq"),
        ("resume", "q", "qq"),
        ("doctor", "qq", "--repair"),
    ],
    ids=lambda words: words[0],
)
def test_a_mistyped_queue_is_said_to_be_so_and_nothing_is_done(client, command, words):
    put(client, active=["a"], jobs={"a": {}}, meta={"version": "echomq:1"})
    before = dump(client)

    done = command(*words)

    assert (done.code, done.out) == (3, "")
    assert done.err == "Error: there is no queue 'qq' under the prefix 'emq'; did you mean 'q'?\n"
    assert dump(client) == before


def test_status_shows_every_queue(client, command):
    put_busy_queue(client)
    put(client, "mails", wait=["a"], jobs={"a": {}}, meta={"paused": "1"})

    heading, mails, q = command("status").out.splitlines()

    assert heading.split()[:7] == ["queue", "state", "wait", "active", "delayed", "failed", "completed"]
    assert mails.split()[:7] == ["mails", "paused", "1", "0", "0", "0", "0"]
    assert q.split()[:7] == ["q", "running", "3", "1", "1", "2", "1"]


def test_status_as_data(client, command):
    put_busy_queue(client)

    (queue,) = command("status", "--json").data

    assert queue["name"] == "q"
    assert queue["counts"]["failed"] == 2
    assert queue["oldest_active"]["job_id"] == "runs"
    assert queue["workers"] == []


def test_status_of_nothing_says_so(command):
    assert command("status").out == "There is no queue under the prefix 'emq' in this database.\n"
    assert command("status", "--json").data == []


@pytest.mark.parametrize(
    ("meta", "more", "expected"),
    [
        ({"concurrency": "1"}, {"active": ["a"]}, "full (1 at once)"),
        ({"max": "1"}, {"limiter": "1"}, "rate limit, "),
        ({"concurrency": "2"}, {"active": ["a"]}, "running"),
    ],
)
def test_status_says_why_nothing_starts(client, command, meta, more, expected):
    put(client, jobs={"a": {}}, meta=meta, **more)
    client.pexpire("emq:q:limiter", 60_000)

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


def test_explain_tells_each_stall_and_what_comes_next(client, command):
    held = {"pb": "host:7", "processedOn": str(NOW - 60_000), "timestamp": str(NOW - 90_000), "ats": "1"}
    put(client, active=["a"], jobs={"a": held}, stalled={"a"}, meta={"paused": "1"})
    StalledChecker(client).check("q")

    (story,) = command("explain", "q", "a", "--json").data

    assert [event["text"] for event in story["story"]] == [
        "added",
        "fetched by host:7",
        "stall 1 of at most 1: held by host:7 since 2023-11-14T22:12:20.000Z, back to paused",
    ]
    assert "dramatiq-echomq resume q" in story["next"][0]
    out = command("explain", "q", "a").out
    assert "stall 1 of at most 1" in out
    assert "Now: in paused for" in out


@pytest.mark.parametrize(
    ("structures", "expected"),
    [
        ({"active": ["a"]}, "The next check marks it; the one after brings it back to wait."),
        ({"active": ["a"], "stalled": {"a"}}, "The next check brings it back to wait."),
        ({"active": ["a"], "jobs": {"a": {"stc": "1"}}}, "the one after fails it, for it has stalled too often."),
        ({"active": ["a"]}, "No check was made lately. If none comes, run workers with StalledCheckerMiddleware"),
        ({"active": ["a"], "locks": ["a"]}, "Its worker holds the lock, which would end in "),
        ({"active": ["a"], "a:lock": "token"}, "Its lock never ends"),
        ({"wait": ["a"]}, "No worker of this queue is connected"),
        ({"wait": ["a"], "meta": {"concurrency": "0"}}, "As many jobs are active as the queue allows (0)"),
        ({"delayed": {"a": (NOW + 10**12) * 4096}}, "It is due at 2055-"),
        ({"failed": {"a": 1}}, "`dramatiq-echomq retry q a`"),
        ({"completed": {"a": 1}}, "Nothing."),
        ({"waiting_children": {"a": 1}}, "It waits for other jobs of its flow"),
        ({"wait": ["a"], "delayed": {"a": 4096}}, "`dramatiq-echomq doctor q` says what can be done."),
        ({"wait": ["a"], "jobs": {"a": {"defa": "child x failed"}}}, "The worker that fetches it fails it: child x"),
        ({"wait": ["b"]}, "Nothing by itself."),
        ({"wait": ["a"], "jobs": {}}, "drops it. Nothing can be run without its data."),
    ],
)
def test_explain_says_what_comes_next(client, command, structures, expected):
    put(client, **{"jobs": {"a": {}}, **structures})

    assert expected in command("explain", "q", "a").out


def test_explain_says_what_an_id_that_is_nowhere_means(client, command):
    put_busy_queue(client)

    done = command("explain", "q", "nope")

    assert done.code == 3
    assert done.err.startswith("Error: queue 'q' has no job 'nope': it was removed or never added")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stauts"], "There is no command 'stauts'. Did you mean status?"),
        (["retry", "q"], "Name the jobs, or say --all, or --stalled."),
        (["retry", "q", "1", "--all"], "Name the jobs, or say --all, or --stalled."),
        (["jobs", "q", "--state", "waiting"], "'waiting' is not one of"),
        (["status", "--prefix", "emq:"], "prefix (keyword argument) is 'emq:'"),
        (["inspect", "q", "--max-stalled-count", "-1"], "max_stalled_count (keyword argument) is -1"),
        (["status", "--url", "http://:secret@x"], "must be a Redis URL"),
        (["check"], "Missing argument"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_is_misunderstood_exits_with_2(capsys, words, expected):
    assert main(words) == 2
    said = capsys.readouterr()
    assert expected in said.err
    assert "secret" not in said.err


def test_redis_that_cannot_be_used_exits_with_4(client, command, capsys):
    assert main(["status", "--url", "redis://:secret@127.0.0.1:1/0"]) == 4
    said = capsys.readouterr().err
    assert "Redis cannot be used: ConnectionError" in said
    assert "Look at --url, or at REDIS_URL." in said
    assert "secret" not in said
    put(client, meta={"version": "echomq:2.0"})
    assert command("jobs", "q").code == 4


def test_a_queue_that_cannot_be_used_hides_no_other(client, command):
    put(client, "bad", meta={"version": "echomq:2.0"})
    put_busy_queue(client)

    done = command("status")

    assert done.code == 4
    _, bad, q, problem = done.out.splitlines()
    assert bad.split()[:4] == ["bad", "cannot", "be", "used"]
    assert q.split()[:2] == ["q", "running"]
    assert problem.startswith("bad: the script refuses the queue: emq:bad:meta says version echomq:2.0")
    assert [queue["problem"] == "" for queue in command("status", "--json").data] == [False, True]


def test_the_environment_says_which_redis_and_which_prefix(client, redis_url, capsys, monkeypatch):
    put(client, "theirs", prefix="bull", wait=["a"], jobs={"a": {}}, meta={"version": "x"})
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_PREFIX", "bull")

    assert main(["status", "--json"]) == 0
    assert [queue["name"] for queue in json.loads(capsys.readouterr().out)] == ["theirs"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(capsys, shell):
    assert main(["completion", shell]) == 0
    assert "_DRAMATIQ_ECHOMQ_COMPLETE" in capsys.readouterr().out


def test_names_of_queues_are_completed(client, redis_url, capsys, monkeypatch):
    put(client, "images", wait=["a"], jobs={"a": {}}, meta={"version": "x"})
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("_DRAMATIQ_ECHOMQ_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "dramatiq-echomq pause im")
    monkeypatch.setenv("COMP_CWORD", "2")

    with pytest.raises(SystemExit):
        main([])

    assert "plain,images" in capsys.readouterr().out


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
