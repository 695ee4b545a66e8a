"""A user who lacks a right: a script is refused before it writes, with the name of what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dramatiq_echomq import EchoMQBroker, QueueRefused, StalledChecker
from dramatiq_echomq.protocol.rights import COMMAND
from dramatiq_echomq.protocol.scripts import load

from ..support.acl import BROKER_RIGHTS, USER, user
from ..support.job_data import add
from ..support.queue_data import dump, put
from ..support.servers import wait_until

SCRIPTS = {path.name: load(path.name) for path in sorted((Path(__file__).parent.parent.parent / "lua").glob("*.lua"))}
PROBE = SCRIPTS.pop("checkRights-1.lua").code
PROBED = {*re.findall(r"\b([A-Z]+) = \{ \{", PROBE), "TIME"}
WRITES = set(re.findall(r"\b([A-Z]+) = \{ \{[^}]*\}, WRITES \}", PROBE))


def commands_of(script) -> set[str]:
    return PROBED & set(COMMAND.findall(script.code))


@pytest.fixture
def admin(server):
    with server.client() as admin:
        admin.flushall()
        put(admin, wait=["b"], active=["c"], jobs={"a": {}, "b": {}, "c": {}}, meta={"version": "echomq:1"})
        yield admin


def test_every_command_of_a_script_is_tried():
    called = {each for script in SCRIPTS.values() for each in re.findall(r'p?call\("([A-Z]+)"', script.code)}
    assert called == PROBED & called


@pytest.mark.parametrize("name", [name for name, script in SCRIPTS.items() if commands_of(script) & WRITES])
def test_a_script_that_would_stop_halfway_writes_nothing_and_names_the_command(server, admin, name):
    script = SCRIPTS[name]
    needed = commands_of(script) | {"SET"}
    before = dump(admin)
    for command in needed:
        rights = " ".join(f"+{each}" for each in needed - {command})
        refusal = f"may not run {command}, which {name} does.* {USER} [+]{command.lower()}$"
        with (
            user(server, admin, f"~emq:* +eval +evalsha {rights}") as client,
            pytest.raises(QueueRefused, match=refusal),
        ):
            script(client, ["emq:q:meta"] * script.number_of_keys, ["emq:q:"])
    wait_until(lambda: dump(admin) == before)


def test_a_user_who_may_only_read_can_run_what_only_reads(server, admin):
    with user(server, admin, "~emq:* +eval +evalsha +time +@read") as client:
        checker = StalledChecker(client)
        first, verdict = checker.inspect("q")[0], checker.verdicts("q")[0]
        assert checker.inspect_job("q", first.job_id) == first
        assert first.verdict == verdict.verdict == "mark"
        assert not checker.job_stalled("q", "a")
        with pytest.raises(QueueRefused, match="may not run SET"):
            StalledChecker(client).check("q")


def test_a_message_that_could_not_be_added_is_not_there(server, admin):
    fewer = BROKER_RIGHTS.replace("+zadd", "")
    with user(server, admin, fewer) as client:
        broker = EchoMQBroker(client=client, middleware=[])
        before = dump(admin)
        with pytest.raises(QueueRefused, match="ZADD"):
            add(broker, 1)
        assert dump(admin) == before

        admin.execute_command("ACL", "SETUSER", USER, "+zadd")
        add(broker, 1)
    assert admin.llen("emq:q:wait") == 2


def test_a_right_that_is_taken_away_is_named_and_stops_no_later_call_halfway(server, admin):
    with user(server, admin, BROKER_RIGHTS) as client:
        broker = EchoMQBroker(client=client, middleware=[])
        add(broker, 1)
        admin.execute_command("ACL", "SETUSER", USER, "-zadd")
        with pytest.raises(QueueRefused, match=r"may not run (ZADD|a command) any more, which addJobs") as caught:
            add(broker, 2)
        if "a command" not in str(caught.value):  # Redis before 7.2 does not say which
            assert str(caught.value).endswith(f"{USER} +zadd")
        before = dump(admin)
        with pytest.raises(QueueRefused, match=r"may not run ZADD, which addJobs-1.lua does. Nothing was written"):
            add(broker, 3)
        assert dump(admin) == before

        admin.execute_command("ACL", "SETUSER", USER, "+zadd")
        add(broker, 4)


def test_rights_are_looked_at_once(server, admin):
    with user(server, admin, BROKER_RIGHTS) as client:
        broker = EchoMQBroker(client=client, middleware=[])
        add(broker, 1)
        before = admin.info("commandstats")["cmdstat_eval"]["calls"]
        add(broker, 2)
        assert admin.info("commandstats")["cmdstat_eval"]["calls"] == before
