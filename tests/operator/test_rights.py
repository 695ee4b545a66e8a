"""What a Redis user needs who acts with the command: no verb stops for a right that the documentation does not name."""

from __future__ import annotations

import pytest

from dramatiq_echomq.cli import main

from ..support.acl import ACTING_RIGHTS, BROKER_RIGHTS, CHECKER_RIGHTS
from ..support.documents import text_of
from ..support.operator_data import put_busy_queue
from ..support.queue_data import put

RIGHTS = sorted({*CHECKER_RIGHTS.split(), *BROKER_RIGHTS.split(), *ACTING_RIGHTS.split()})

ACTS = [
    ["retry", "q", "--all"],
    ["retry", "q", "old"],
    ["remove", "q", "waits"],
    ["promote", "q", "later"],
    ["pause", "q"],
    ["resume", "q"],
    ["check", "q"],
    ["explain", "q", "runs"],
]


@pytest.fixture
def url(client, redis_url) -> str:
    client.execute_command("ACL", "SETUSER", "operator", "reset", "on", ">pass", *RIGHTS)
    yield redis_url.replace("://", "://operator:pass@")
    client.execute_command("ACL", "DELUSER", "operator")


@pytest.mark.parametrize("words", ACTS, ids=" ".join)
def test_a_user_with_the_rights_that_are_documented_can_act(client, capsys, url, words):
    put_busy_queue(client)

    assert main([*words, "--url", url]) == 0, capsys.readouterr().err


def test_such_a_user_can_repair(client, capsys, url):
    put(client, jobs={"a": {}}, wait=["gone", "a", "a"], meta={"version": "echomq:1"})

    main(["doctor", "q", "--repair", "--yes", "--url", url])

    said = capsys.readouterr()
    assert said.err == ""
    assert "no-job: repaired 1" in said.out
    assert "twice: repaired 1" in said.out


def test_the_rights_are_documented():
    assert ACTING_RIGHTS in text_of("security").replace("\n", " ")
