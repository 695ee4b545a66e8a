"""What the pages for those who work on the code say is true: keys, fields, files, and the life of a job."""

from __future__ import annotations

import re
from itertools import pairwise

import dramatiq

from dramatiq_echomq import EchoMQBroker, StalledChecker
from dramatiq_echomq.protocol.keys import QueueKeys

from ..support.documents import ROOT, section, text_of

MESSAGE = dramatiq.Message(queue_name="q", actor_name="resize", args=(), kwargs={}, options={})


def test_every_key_of_a_queue_is_described():
    page = text_of("protocol")
    keys = QueueKeys("q", "emq")
    names = {value.removeprefix(keys.base) for value in vars(keys).values() if value.startswith(keys.base)} - {""}
    for source in (ROOT / "lua" / "src").rglob("*.lua"):
        names |= set(re.findall(r'prefix \.\. "([a-z:-]{2,})"', source.read_text("utf-8")))
    missing = [name for name in names if f"``P{name}" not in page]

    assert len(names) >= 20
    assert missing == []


def test_every_script_is_described():
    page = section(text_of("protocol"), "Steps")
    names = [path.name.partition("-")[0] for path in (ROOT / "lua").glob("*.lua")]

    assert [name for name in sorted(names) if f"``{name}``" not in page] == []


def test_every_field_that_a_script_writes_to_a_job_is_described():
    page = section(text_of("protocol"), "Fields of a job")
    fields = set()
    for source in (ROOT / "lua" / "src").rglob("*.lua"):
        for call in re.findall(r'"HSET", (?:job\.)?key, ([^\n]*)', source.read_text("utf-8")):
            fields |= set(re.findall(r'"([a-zA-Z]+)"', call))
    fields -= {"count", "prevTS", "prevCount"}  # of a key of metrics

    assert len(fields) >= 10
    assert [field for field in sorted(fields) if field not in page] == []


def test_what_the_architecture_names_is_there():
    page = text_of("architecture")
    roots = [ROOT, ROOT / "dramatiq_echomq", ROOT / "dramatiq_echomq" / "broker", ROOT / "lua", ROOT / "lua" / "src"]
    roots += [ROOT / "dramatiq_echomq" / "recovery", ROOT / "lua" / "src" / "includes", ROOT / "tests"]
    named = set(re.findall(r"``([\w./-]+\.(?:py|lua|rst))``", page))

    assert len(named) >= 60
    assert [name for name in sorted(named) if not any((root / name).is_file() for root in roots)] == []


def test_every_include_of_the_checks_has_its_place_in_the_architecture():
    """Else nobody finds where a rule stands."""
    page = text_of("architecture")
    plumbing = {"call", "job", "lookup", "apply", "report", "leave_active"}
    stalled = {path.stem for path in (ROOT / "lua" / "src" / "includes" / "stalled").glob("*.lua")}

    assert {name for name in stalled if f"``stalled/{name}.lua``" not in page} <= plumbing


def look(client, job_id: str) -> tuple:
    """Where a job is, whether it has a lock and a mark, its fields, and how many events there are."""
    keys = QueueKeys("q")
    lists = {"wait": client.lrange(keys.wait, 0, -1), "active": client.lrange(keys.active, 0, -1)}
    lists["completed"] = client.zrange(keys.completed, 0, -1)
    (place,) = (name for name, ids in lists.items() if job_id.encode() in ids)
    has_lock, has_mark = client.exists(keys.lock(job_id)), client.sismember(keys.stalled, job_id)
    return place, has_lock, has_mark, client.hkeys(keys.job(job_id)), client.xrange(keys.events)


def test_the_life_of_a_job_is_as_told(client):
    table = section(text_of("architecture"), "The life of a job as data").split("=\n")[-2]
    broker = EchoMQBroker(client=client, middleware=[])
    checker, jobs = StalledChecker(client), {}
    steps = {
        "send": lambda: jobs.update(sent=broker.enqueue(MESSAGE)),
        "fetched": lambda: jobs.update(held=next(broker.consume("q", timeout=100))),
        "its worker dies": lambda: client.delete(QueueKeys("q").lock(jobs["sent"].options["echomq_job_id"])),
        "first check": lambda: checker.check("q"),
        "second check": lambda: checker.check("q"),
        "fetched again": lambda: jobs.update(held=next(another.consume("q", timeout=100))),
        "acked": lambda: another.consume("q").ack(jobs["held"]),
    }
    another = EchoMQBroker(client=client, middleware=[])
    fields, events, told = set(), 0, []
    for step, do in steps.items():
        do()
        place, lock, mark, now, entries = look(client, jobs["sent"].options["echomq_job_id"])
        new = ", ".join(sorted(name.decode() for name in set(now) - fields))
        happened = ", ".join(entry[b"event"].decode() for _, entry in entries[events:])
        told.append((step, place, "yes" if lock else "no", "yes" if mark else "no", new, happened))
        fields, events = set(now), len(entries)
    broker.close()
    another.close()

    ends = [0, 28, 38, 43, 48, 95, None]
    rows = [tuple(line[a:b].strip(" `") for a, b in pairwise(ends)) for line in table.splitlines() if line[0] != "="]
    assert rows == told
