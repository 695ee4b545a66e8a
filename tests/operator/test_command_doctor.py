"""What `doctor` tells and repairs, and with which code it exits."""

from __future__ import annotations

import io
import re

import pytest

from ..support.queue_data import NOW, put, state


@pytest.mark.usefixtures("worker_of_q")
@pytest.mark.parametrize("answer", [(), ("--json",)], ids=["people", "programs"])
def test_the_doctor_shows_what_it_repairs(client, command, answer):
    put(client, jobs={"lost": {}}, active=["ghost"], meta={"version": "echomq:1"})

    found = command("doctor", "q", *answer)
    assert found.code == 1
    assert "jobs that no list of the queue has" in found.out
    done = command("doctor", "q", "--repair", "--yes", *answer)

    assert done.code == 0
    assert "ghost" in done.out
    assert state(client)["wait"] == ["lost"]
    assert command("doctor", "q", *answer).code == 0


def test_the_doctor_says_that_nobody_runs_the_jobs_there_are(client, command):
    put(client, jobs={"a": {}, "b": {}}, active=["a"], wait=["b"], locks=["a"], meta={"version": "echomq:1"})

    found = command("doctor", "q")

    assert found.code == 1
    assert found.out.startswith("no-worker: jobs wait, are due or are active, and no worker is connected")
    assert "(1 waiting, 1 active).\n    to do: start a worker" in found.out


def test_a_job_that_is_due_and_that_nobody_takes_is_told_by_every_verb(client, command):
    put(client, jobs={"a": {}}, delayed={"a": (NOW - 60_000) * 4096}, meta={"version": "echomq:1"})

    (finding,) = command("doctor", "q", "--json").data
    explained = command("explain", "q", "a").out

    assert finding["kind"] == "no-worker"
    assert finding["detail"].startswith("0 waiting, 0 active, a delayed one due for ")
    assert "no worker" in command("status").out
    assert re.search(r"Next: It has been due for \d.* since 2023-11-14 22:12:20 UTC, and waits for a worker", explained)
    assert "Next: No worker of this queue is connected" in explained


def test_a_job_that_will_be_due_needs_no_worker_yet(client, command):
    put(client, jobs={"a": {}}, delayed={"a": 2**55}, meta={"version": "echomq:1"})

    assert command("doctor", "q").code == 0


@pytest.mark.usefixtures("worker_of_q")
def test_the_doctor_looks_at_every_queue(client, command):
    put(client, jobs={"lost": {}}, active=["ghost"], meta={"version": "echomq:1"})
    put(client, "a", meta={"version": "echomq:1"})
    put(client, "b", meta={"version": "echomq:1"})
    put(client, "odd", meta={"version": "echomq:2"})

    told, data = command("doctor"), command("doctor", "--json").data
    done = command("doctor", "--repair", "--yes")

    found = [line for line in told.out.splitlines() if not line.startswith(" ")]
    assert [line.split(": ")[:2] for line in found[:-1]] == [
        ["odd", "refused"],
        ["q", "1 x no-job"],
        ["q", "1 x nowhere"],
    ]
    assert found[-1] == "Nothing is wrong with queues 'a', 'b'."
    assert [(each["queue"], each["kind"]) for each in data] == [("odd", "refused"), ("q", "no-job"), ("q", "nowhere")]
    assert (told.code, done.code) == (1, 1)
    assert done.out.endswith("q: no-job: repaired 1\nq: nowhere: repaired 1\n")
    client.delete("emq:odd:meta")
    assert command("doctor").out == "Nothing is wrong with queues 'a', 'b', 'q'.\n"


def test_a_doctor_with_no_queue_to_look_at_says_so(command):
    done = command("doctor")

    assert done.code == 0
    assert done.out.startswith("There is no queue under the prefix 'emq' in this database")


def test_on_a_terminal_one_sees_how_far_the_doctor_is(client, command, terminal):
    put(client, jobs={name: {} for name in "abc"}, meta={"version": "echomq:1"})

    assert command("doctor", "q").code == 1

    assert "looking again, nowhere: " in terminal.getvalue()
    assert "jobs that no list of the queue has" in terminal.getvalue()


@pytest.mark.parametrize("typed", ["n\n", ""])
def test_the_doctor_asks_before_a_repair(client, command, monkeypatch, typed):
    put(client, active=["ghost"], meta={"version": "echomq:1"})
    before = state(client)

    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    refused = command("doctor", "q", "--repair")
    assert refused.code == 1
    assert refused.err.endswith("Nothing was repaired.\n")
    assert command("doctor", "q", "--repair", "--json").code == 2

    assert state(client) == before
