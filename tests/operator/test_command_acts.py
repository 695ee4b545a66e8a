"""What the verbs that act do, and with which code they exit."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker

from ..support.operator_data import MESSAGE_ID, message_data, put_busy_queue
from ..support.queue_data import NOW, put, state


@pytest.mark.parametrize(
    ("words", "done"),
    [
        (["old"], ["old"]),
        (["--all"], ["old", "crashed"]),
        (["--stalled"], ["crashed"]),
    ],
)
def test_failed_jobs_are_retried(client, command, words, done):
    put_busy_queue(client)

    answer = command("retry", "q", *words, "--json")

    assert (answer.code, answer.data) == (0, {"done": done, "refused": {}})
    assert set(done) <= set(state(client)["wait"])


def test_a_message_is_retried_by_the_id_in_the_log(client, command):
    jobs = {name: {"data": message_data(), "timestamp": str(at)} for at, name in enumerate(("first", "second"), 1)}
    put(client, jobs=jobs, completed={"first": 1}, failed={"second": 1})

    answer = command("retry", "q", MESSAGE_ID)

    assert (answer.code, answer.out) == (0, "1 retried: 'second'\n")
    assert state(client)["wait"] == ["second"]


def test_what_was_not_done_is_told_and_exits_with_1(client, command):
    put_busy_queue(client)

    answer = command("remove", "q", "runs", "waits", "nope")

    assert answer.code == 1
    lines = answer.out.splitlines()
    assert lines[:2] == ["1 removed: 'waits'", "not removed: 'runs': a worker runs it: its lock is held"]
    assert lines[2].startswith("not removed: 'nope': queue 'q' has no job 'nope'")


def test_all_jobs_of_a_message_are_removed(client, command):
    jobs = {name: {"data": message_data()} for name in ("first", "second")}
    put(client, jobs=jobs, completed={"first": 1}, delayed={"second": 4096})

    assert command("remove", "q", MESSAGE_ID).code == 0

    assert not {"first", "second", "delayed", "completed"} & state(client).keys()


def test_a_delayed_job_is_promoted(client, command):
    put_busy_queue(client)

    assert command("promote", "q", "later").out == "1 promoted: 'later'\n"
    assert state(client)["wait"][0] == "later"
    assert command("promote", "q", "later").code == 1


def test_queues_are_paused_and_resumed(client, command):
    put_busy_queue(client)
    put(client, "mails", wait=["a"], jobs={"a": {}})

    assert command("pause", "q", "mails").out == "Queue 'q' is paused.\nQueue 'mails' is paused.\n"
    assert state(client)["meta"]["paused"] == "1"
    assert command("resume", "q", "--json").data == {"q": False}
    assert "paused" not in state(client)["meta"]


def test_a_check_marks_and_then_brings_back(client, command):
    put(client, active=["a"], jobs={"a": {}})

    assert command("check", "q", "--dry-run").out == "q: would be: 1 without a lock marked\n"
    assert command("check", "q").out == "q: 1 without a lock marked\n"
    assert command("check", "q", "--dry-run").out == "q: would be: 1 brought back ('a')\n"
    (check,) = command("check", "q", "--json").data
    assert check["recovered_ids"] == ["a"]
    assert command("check", "q").out == "q: nothing stalled\n"


def test_a_check_fails_what_has_stalled_too_often(client, command):
    put(client, active=["a"], jobs={"a": {"name": "resize"}}, stalled={"a"})

    answer = command("check", "q", "--max-stalled-count", "0")

    assert answer.out == "q: 1 stalled too often and failed ('a' ('resize'))\n"


def test_messages_of_a_redis_broker_are_moved(client, command):
    old = RedisBroker(client=client, middleware=[])
    old.declare_queue("mails")
    for number in range(3):
        old.enqueue(Message("mails", "send", (number,), {}, {}, message_id=str(number), message_timestamp=NOW))

    answer = command("migrate", "mails")

    assert (answer.code, answer.out) == (0, "mails: 3 waiting, 0 delayed, 0 dead moved\n")
    assert client.llen("emq:mails:wait") == 3
    assert command("migrate").out == "There are no messages under the namespace 'dramatiq'.\n"
    assert command("migrate", "mails").out == "mails: no messages under the namespace 'dramatiq'\n"
    assert command("migrate", "--app", "no_such_module").code == 2


def test_what_cannot_be_moved_is_told_with_what_to_do(client, command):
    old = RedisBroker(client=client, middleware=[])
    old.declare_queue("mails")
    for number in range(3):
        old.enqueue(Message("mails", "send", (number,), {}, {}, message_id=str(number), message_timestamp=NOW))
    held = old.do_fetch("mails", 1)  # by a worker that is heard of right now
    client.hset("dramatiq:mails.msgs", client.lindex("dramatiq:mails", 0), b"\x80pickled")

    done = command("migrate", "mails")

    assert len(held) == 1
    assert (done.code, done.out) == (
        1,
        "mails: 1 waiting, 0 delayed, 0 dead moved; 2 left: 1 held by old workers, 1 that cannot be decoded\n"
        "To move what old workers hold, stop them and run this again. A worker that was killed counts as alive until "
        "it has not been heard of for 60 s.\n"
        "To decode the others, name the --app that sets the encoder with which they were sent.\n",
    )
    (move,) = command("migrate", "mails", "--json").data
    assert (move["left"], move["held"], move["undecodable"]) == (2, 1, 1)


def test_messages_are_moved_with_the_options_of_the_actors_of_an_app(client, command, monkeypatch):
    old, new = RedisBroker(client=client, middleware=[]), EchoMQBroker(client=client, middleware=[])
    dramatiq.actor(lambda: None, broker=new, actor_name="send", queue_name="mails", max_stalled_count=3)
    old.declare_queue("mails")
    old.enqueue(Message("mails", "send", (), {}, {}))
    brokers = [StubBroker(), new]
    monkeypatch.setattr("dramatiq_echomq.cli.migrate.get_broker", lambda: brokers.pop(0))

    refused, done = command("migrate", "--app", "json"), command("migrate", "--app", "json")

    assert (refused.code, refused.err) == (2, "Error: the broker of json is a StubBroker and no EchoMQBroker\n")
    assert done.out == "mails: 1 waiting, 0 delayed, 0 dead moved\n"
    (job,) = command("jobs", "mails", "--json").data
    assert job["opts"]["maxStalledCount"] == 3


def test_on_a_terminal_one_sees_how_far_a_retry_of_many_is(client, command, terminal, monkeypatch):
    monkeypatch.setattr("dramatiq_echomq.cli.actions.MANY", 3)
    put(client, jobs={name: {} for name in "abc"}, failed=dict.fromkeys("abc", 1), meta={"version": "echomq:1"})

    assert command("retry", "q", "--all").code == 0

    assert "100%" in terminal.getvalue()
    assert sorted(state(client)["wait"]) == ["a", "b", "c"]
