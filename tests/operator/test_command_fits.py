"""What the command shows on a screen of any width, and what it says where there is nothing to show."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from dramatiq_echomq.cli import main
from dramatiq_echomq.cli.command import VERBS

from ..support.operator_data import MESSAGE_ID, put_busy_queue
from ..support.queue_data import put


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
@pytest.mark.parametrize("look", [("status",), ("jobs", "q"), ("inspect", "q")], ids=" ".join)
def test_no_word_is_broken_and_no_column_is_left_out_however_narrow_the_screen_is(
    client, command, monkeypatch, look, width
):
    put_busy_queue(client)
    client.persist("emq:q:runs:lock")  # a time that is left would be less at the second look
    wide = command(*look).out
    monkeypatch.setenv("COLUMNS", str(width))

    out = command(*look).out

    assert all(cell_len(line.rstrip()) <= width for line in out.splitlines())
    headings = wide.splitlines()[0].split()
    words = {word for word in wide.split() if word != "-" and word not in headings and "." not in word}
    assert words <= set(out.split())


def test_a_row_that_is_too_wide_is_lines_that_name_their_values(client, command, monkeypatch):
    put_busy_queue(client)
    monkeypatch.setenv("COLUMNS", "80")

    assert command("status").out.splitlines()[0] == (
        "queue: q  state: no worker  wait: 3  active: 1  delayed: 1  failed: 2"
    )
    (line,) = (line for line in command("jobs", "q").out.splitlines() if MESSAGE_ID in line)
    assert line == f"state: wait  job: waits  message: {MESSAGE_ID}"


def test_rows_stay_on_their_lines_where_there_is_no_terminal(client, command, monkeypatch):
    """Another program reads them."""
    put_busy_queue(client)
    monkeypatch.delenv("COLUMNS")

    rows = command("jobs", "q").out.splitlines()

    assert len(rows) == 1 + len(command("jobs", "q", "--json").data)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_says_in_a_whole_sentence_what_each_verb_is_for(capsys, monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith(f"  {verb} "))
    assert line.endswith(".")
    assert not line.endswith("...")


def test_a_state_may_be_called_as_others_call_it(client, command):
    put_busy_queue(client)
    assert command("jobs", "q", "--state", "waiting").out == command("jobs", "q", "--state", "wait").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((), " It has 2 completed: see --state."),
        (("--state", "wait"), " It has 2 completed, 1 failed: see --state."),
        (("--state", "wait", "--state", "failed", "--grep", "zzz"), " It has 2 completed: see --state."),
        (("--state", "wait", "--state", "failed", "--state", "completed", "--grep", "zzz"), ""),
    ],
    ids=["the usual states", "a state", "a text", "a text anywhere"],
)
def test_where_no_job_is_found_it_is_said_where_there_are_some(client, command, words, hint):
    put(client, completed={"a": 1, "b": 2}, jobs={"a": {}, "b": {}, "c": {}})
    if words:
        put(client, failed={"c": 3})

    assert command("jobs", "q", *words).out == f"There are no such jobs in queue 'q'.{hint}\n"


@pytest.mark.parametrize(("prefix", "other"), [("emq", "bull"), ("bull", "emq"), ("mine", "emq")])
def test_queues_under_another_prefix_are_told_where_there_is_none_under_this_one(client, command, prefix, other):
    put(client, "mails", prefix=other, wait=["a"], jobs={"a": {}}, meta={"version": "x"})

    assert command("status", "--prefix", prefix).out == (
        f"There is no queue under the prefix {prefix!r} in this database; there is '{other}:mails', see --prefix.\n"
    )
