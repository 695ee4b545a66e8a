"""Names and ids may be anything: markup, slashes, dots, bytes that are no text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dramatiq_echomq.web.addresses import from_address, to_address

from ..support.pages import job_path, text_of
from ..support.queue_data import META, key, put, state

IDS = ["a/b", "..", ".", "%2F", "~", "a b", "ü€😀", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>']
IDS += ["a?b#c&d=e", "a\\b", "x" * 500, "\udcff\udc80", "new\nline", "{{ 7*7 }}", "repeat:x:1", "\u202eevil", "a\x00b"]


@given(st.binary(min_size=1).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_an_address_leads_back_to_its_text(text):
    address = to_address(text)

    assert from_address(address) == text
    assert address.isascii()
    assert not set(address) & set("/?#%\\ <>\"'&")
    assert not address.startswith(".")


@pytest.mark.parametrize("address", ["", "a/b", "~", "~zz", "~2f", "~61", ".", "ü", "a~2"])
def test_what_is_no_address_is_refused(address):
    if address == "~":
        assert from_address(address) == ""
        return
    with pytest.raises(ValueError):
        from_address(address)


@pytest.mark.parametrize("job_id", IDS)
def test_a_job_with_any_id_is_shown_and_removed(client, pages, job_id):
    raw = job_id.encode("utf-8", "surrogateescape")
    put(client, wait=[raw], jobs={raw: {"name": job_id.encode("utf-8", "surrogateescape")}}, meta=META)

    listed, shown = pages.get("/queues/q?state=wait"), pages.get(job_path(job_id))
    said = pages.act_on_jobs("remove", job_id)

    assert job_path(job_id) in listed
    assert f'value="{to_address(job_id)}"' in shown
    for page in (listed, shown):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "49" not in text_of(page).replace(".49", "")
        assert "\u202e" not in page
    assert "1 job removed" in said
    assert state(client) == {"locks": set(), "meta": META} or "wait" not in state(client)


@pytest.mark.parametrize("name", IDS)
def test_a_queue_with_any_name_is_shown_and_paused(client, pages, name):
    put(client, name, wait=["j"], active=["a"], jobs={"j": {}, "a": {}}, meta=META)

    assert f"/queues/{to_address(name)}" in pages.get("/")
    assert "The queue is paused" in pages.act_on_queue("pause", queue=name)
    assert client.hget(key(name, "meta"), "paused") == b"1"
    for path in (f"/queues/{to_address(name)}", job_path("j", name), "/stalls"):
        pages.get(path)
    assert "1 without a lock marked" in pages.act_on_queue("check", queue=name)
    assert "1 job removed" in pages.act_on_jobs("remove", "j", queue=name)


@pytest.mark.parametrize("score", [float("inf"), 2.0**75, -float("inf")])
def test_a_job_of_any_delay_is_shown(client, pages, score):
    put(client, jobs={"a": {"opts": '{"delay": 1e999}'}}, delayed={"a": score}, meta=META)

    for path in ("/", "/queues/q?state=delayed", job_path("a")):
        assert "delayed" in pages.get(path)


HOSTILE = "</pre><script>alert(1)</script>"


def test_whatever_a_job_holds_is_text(client, pages):
    fields = {
        "name": HOSTILE,
        "data": json.dumps({HOSTILE: HOSTILE}),
        "opts": json.dumps({HOSTILE: HOSTILE}),
        "failedReason": HOSTILE,
        "stacktrace": json.dumps([HOSTILE, HOSTILE]),
        "returnvalue": HOSTILE,
        "pb": HOSTILE,
        "progress": HOSTILE,
        "parentKey": HOSTILE,
        "deid": HOSTILE,
        "rjk": HOSTILE,
        "finishedOn": "1700000000000",
        "processedOn": "1700000000000",
    }
    put(client, HOSTILE, failed={"j": 1}, jobs={"j": fields}, meta=META)
    stall = f"2023-11-14T22:13:20.000Z stall 1 of at most 1: held by {HOSTILE}, back to wait"
    client.rpush(f"emq:{HOSTILE}:j:logs", HOSTILE, stall)
    client.xadd(f"emq:{HOSTILE}:events", {"event": "stalled", "jobId": HOSTILE}, id="1700000000000-1")
    failed = {"event": "failed", "jobId": HOSTILE, "failedReason": "job stalled" + HOSTILE}
    client.xadd(f"emq:{HOSTILE}:events", failed, id="1700000000000-2")
    queue = f"/queues/{to_address(HOSTILE)}"

    for path in (
        "/",
        "/stalls",
        queue,
        f"{queue}?state=failed",
        f"{queue}/jobs/j",
        f"/queues/{to_address(HOSTILE[1:])}",
    ):
        page = pages.client.get(path).text
        assert "<script>alert" not in page
        assert "</pre><script" not in page
    for parameters in ({"text": HOSTILE}, {"state": HOSTILE}, {"offset": HOSTILE}, {"id": HOSTILE}):
        assert "<script>alert" not in pages.client.get(queue, query_string=parameters).text
        assert "<script>alert" not in pages.client.get(f"{queue}/find", query_string=parameters).text


@pytest.mark.parametrize("value", ["nan", "1e400", "-5", "9" * 40, "x", ""])
def test_numbers_that_are_none_do_not_stop_a_page(client, pages, value):
    fields = dict.fromkeys(("timestamp", "processedOn", "finishedOn", "ats", "atm", "stc", "priority", "delay"), value)
    fields |= {"data": value, "opts": value, "stacktrace": value, "returnvalue": value, "progress": value}
    ids = {kind: f"j{kind}" for kind in ("wait", "active", "failed", "completed", "delayed")}
    put(
        client,
        jobs=dict.fromkeys(ids.values(), fields),
        wait=[ids["wait"]],
        active=[ids["active"]],
        **{kind: {ids[kind]: 5} for kind in ("failed", "completed", "delayed")},
        meta={"version": "1", "concurrency": value, "max": value, "duration": value},
    )
    client.hset("emq:q:metrics:completed", mapping={"count": value, "prevTS": value, "prevCount": value})
    client.rpush("emq:q:metrics:completed:data", value, "3")
    client.set("emq:q:stalled-check", value)

    pages.get("/")
    for kind, job_id in ids.items():
        pages.get(f"/queues/q?state={kind}")
        pages.get(job_path(job_id))


def test_keys_of_the_wrong_type_beside_a_queue_do_not_stop_a_page(client, pages):
    put(client, wait=["j"], jobs={"j": {}}, meta=META)
    for name in ("metrics:completed", "metrics:completed:data", "j:logs", "limiter", "stalled-check"):
        client.sadd(f"emq:q:{name}", "x")

    for path in ("/", "/stalls", "/queues/q", job_path("j")):
        pages.get(path)


def test_a_large_job_is_cut(client, pages):
    data = json.dumps({"args": ["x" * 3_000_000]})
    put(client, wait=["j"], jobs={"j": {"data": data, "stacktrace": json.dumps(["y" * 500_000])}}, meta=META)

    page = pages.get(job_path("j"))

    assert len(page) < 800_000
    assert "more characters, which are not shown here" in page
