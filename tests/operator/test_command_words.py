"""What the command says of words and servers that it cannot use, and how it completes words."""

from __future__ import annotations

import json

import pytest
import redis

from dramatiq_echomq import ServerTooOld
from dramatiq_echomq.cli import main

from ..support.operator_data import put_busy_queue
from ..support.queue_data import dump, put


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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stauts"], "There is no command 'stauts'. Did you mean status?"),
        (["retry", "q"], "Name the jobs, or say --all, or --stalled."),
        (["retry", "q", "1", "--all"], "Name the jobs, or say --all, or --stalled."),
        (["jobs", "q", "--state", "waits"], "'waits' is not one of"),
        (["--url", "redis://x", "status"], "--url belongs after the command: dramatiq-echomq status --url URL"),
        (["--json", "status"], "--json belongs after the command"),
        (["--jsn", "status"], "No such option '--jsn'"),
        (["status", "--prefix", "emq:"], "prefix (option) is 'emq:'"),
        (["inspect", "q", "--max-stalled-count", "-1"], "max_stalled_count (option) is -1"),
        (
            ["status", "--url", "http://:secret@x"],
            "url (--url) is '(not shown, it may hold a password)', but",
        ),
        (["migrate", "--from-url", "http://:secret@x"], "url (--from-url) is '(not shown"),
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


@pytest.mark.parametrize(("url", "shown"), [("localhost:6379", "'(not shown"), ("", "''")])
def test_a_bad_url_in_the_environment_is_said_to_come_from_there(capsys, monkeypatch, url, shown):
    monkeypatch.setenv("REDIS_URL", url)
    assert main(["status"]) == 2
    assert f"url (REDIS_URL) is {shown}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "source"), [(["status", "--url", ""], "--url"), (["migrate", "--from-url", ""], "--from-url")]
)
def test_an_empty_url_does_not_stand_for_the_usual_one(capsys, words, source):
    assert main(words) == 2
    expected = f"Error: url ({source}) is '', but it must be a Redis URL such as redis://localhost:6379/0, or unset\n"
    assert capsys.readouterr().err == expected


def test_a_url_that_is_named_matters_and_not_that_of_the_environment(client, command, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "")
    assert command("status").code == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (redis.ResponseError("DB index is out of range"), "DB index is out of range. Look at --url, or at REDIS_URL."),
        (redis.ResponseError("OOM command not allowed"), "OOM command not allowed.\n"),
        (redis.exceptions.NoPermissionError("no right to run 'scan'"), "this Redis user may not do that: no right to"),
        (
            ServerTooOld("6.0.16", "localhost:6379"),
            "the Redis at localhost:6379 is version 6.0.16: dramatiq-echomq needs",
        ),
        (
            redis.exceptions.MovedError("3999 127.0.0.1:6381"),
            "another node of this cluster holds these queues: --url redis://127.0.0.1:6381",
        ),
    ],
    ids=["database", "full", "right", "old", "cluster"],
)
def test_what_redis_refuses_is_told_with_what_can_be_done(command, monkeypatch, error, expected):
    def refuse(*_):
        raise error

    monkeypatch.setattr("dramatiq_echomq.inspection.inspector.QueueInspector.queues", refuse)
    done = command("status")
    assert done.code == 4
    assert expected in done.err


def test_a_queue_that_cannot_be_used_hides_no_other(client, command):
    put(client, "bad", meta={"version": "echomq:2.0"})
    put_busy_queue(client)

    done = command("status")

    assert done.code == 4
    _, bad, q, problem = done.out.splitlines()
    assert bad.split()[:4] == ["bad", "cannot", "be", "used"]
    assert q.split()[:3] == ["q", "no", "worker"]
    assert problem.startswith("bad: the script refuses the queue: emq:bad:meta says version echomq:2.0")
    assert [queue["problem"] == "" for queue in command("status", "--json").data] == [False, True]


ODD = "\x1b[2J\nNow: gone\udcff\u202e"
ODD_JSON = json.dumps([ODD, "\ud800"])
#: Verbs that end by themselves, and with which words behind the queue.
VERBS = {
    **dict.fromkeys(("status", "jobs", "inspect", "pause", "resume"), ((),)),
    **dict.fromkeys(("explain", "remove", "promote"), ((ODD,),)),
    "check": [["--dry-run"], [], []],
    "retry": [[ODD], ["--all"], ["--stalled"]],
    "doctor": [[], ["--repair", "--yes"]],
}


@pytest.mark.parametrize("queue_name", ["q", "q" + ODD])
@pytest.mark.parametrize("verb", list(VERBS))
def test_whatever_others_have_written_a_screen_shows_lines_of_text(client, command, queue_name, verb):
    raw = ODD.encode("utf-8", "surrogateescape")
    texts = dict.fromkeys(("name", "pb", "failedReason", "defa", "parentKey", "rjk", "progress"), raw)
    message = {"queue_name": "q", "actor_name": ODD, "args": [ODD], "kwargs": {ODD: 1}, "options": {}}
    data = json.dumps({**message, "message_id": ODD, "message_timestamp": 1})
    jobs = {raw: {**texts, "data": data, "opts": "1", "stacktrace": ODD_JSON}, b"lost" + raw: {}}
    structures = {"wait": [raw], "active": [raw, b"gone" + raw], "failed": {raw: 1}, "stalled": {raw}}
    put(client, queue_name, jobs=jobs, meta={"version": "echomq:1", "paused": "1"}, **structures)

    for words in VERBS[verb]:
        done = command(verb, queue_name, *words)

        assert done.code in (0, 1), done.err
        for line in (done.out + done.err).splitlines():
            assert line.isprintable()
            assert not line.startswith("Now: gone")


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
