from __future__ import annotations

import json
import logging

import pytest
import redis
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import StalledCheckerMiddleware

from ..support.brokers import booted, lines, recoverer_of
from ..support.queue_data import key, put
from ..support.servers import Server, wait_until

SECRET = "s3cr3t"


@pytest.fixture(autouse=True)
def all_lines(caplog):
    caplog.set_level(logging.DEBUG)


def test_what_was_brought_back_is_a_warning_and_what_was_failed_an_error(client, caplog):
    put(client, active=["bad", "old"], jobs={"bad": {"stc": "1", "name": "resize"}, "old": {}}, stalled={"bad", "old"})
    recoverer, _ = recoverer_of(client)
    recoverer.check("q")
    assert lines(caplog, "WARNING") == ["1 stalled job of queue 'q' brought back: 'old'"]
    assert lines(caplog, "ERROR") == ["1 job of queue 'q' stalled too often and failed: 'bad' ('resize')"]


def test_the_messages_of_jobs_are_named_by_their_own_ids_as_well(client, caplog):
    data = {"queue_name": "q", "actor_name": "work", "args": [], "kwargs": {}, "options": {}, "message_timestamp": 1}
    jobs = {job_id: {"data": json.dumps({**data, "message_id": f"m-{job_id}"})} for job_id in ("back", "kept", "gone")}
    jobs["kept"] |= {"stc": "1"}
    jobs["gone"] |= {"stc": "1", "opts": '{"removeOnFail": true}'}
    put(client, active=list(jobs), jobs=jobs, stalled=set(jobs))
    recoverer, _ = recoverer_of(client)

    recoverer.check("q")

    assert lines(caplog, "WARNING", "ERROR") == [
        "1 stalled job of queue 'q' brought back: 'back' (message 'm-back')",
        "2 jobs of queue 'q' stalled too often and failed: 'gone' ('work', message 'm-gone'), "
        "'kept' ('work', message 'm-kept')",
    ]


def test_a_check_that_found_nothing_is_not_logged(client, caplog):
    recoverer, _ = recoverer_of(client)
    recoverer.check("q")
    assert lines(caplog) == []


def test_many_ids_are_a_line_of_a_few(client, caplog):
    ids = [str(number) for number in range(25)]
    put(client, active=ids[::-1], jobs={job_id: {} for job_id in ids}, stalled=set(ids))
    recoverer, _ = recoverer_of(client)
    recoverer.check("q")
    (line,) = lines(caplog)
    assert line.startswith("25 stalled jobs of queue 'q' brought back: '0', '1', ")
    assert line.endswith("'9' and 15 more")


ODD_IDS = [b"a\nERROR forged", b"\r\n\x1b[31mred", "a\u2028b\x85c".encode(), b"\xff\xfe\x00", b"x" * 10_000, b"a:b"]


@pytest.mark.parametrize("job_id", ODD_IDS, ids=range(len(ODD_IDS)))
def test_no_id_breaks_a_log_line(client, caplog, job_id):
    put(client, active=[job_id], jobs={job_id: {"opts": "no json", "parent": "no json"}}, stalled={job_id})
    recoverer, recorder = recoverer_of(client)
    recoverer.check("q")
    assert len(recorder.named("recovered")) == 1
    assert len(lines(caplog)) == 3
    for line in lines(caplog):
        assert line.isprintable()
        assert len(line) < 600


@pytest.mark.parametrize("job_id", ODD_IDS, ids=range(len(ODD_IDS)))
def test_no_id_of_a_key_that_is_no_job_breaks_a_log_line(client, caplog, job_id):
    put(client, active=[job_id], stalled={job_id})
    client.set(key("q", job_id), "no hash")
    recoverer, _ = recoverer_of(client)
    recoverer.check("q")
    (line,) = lines(caplog)
    assert "is no hash" in line or len(job_id) > 1_000
    assert line.isprintable()
    assert len(line) < 600


def test_an_oddity_is_told_once_for_as_long_as_it_is_there(client, caplog):
    put(client, active=["a"])
    client.set(key("q", "a"), "no hash")
    recoverer, _ = recoverer_of(client)
    for _ in range(6):
        client.delete(key("q", "stalled-check"))
        recoverer.check("q")
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize("policy", ["volatile-lru", "allkeys-random"])
def test_a_server_that_may_evict_locks_is_warned_of_once(client, caplog, policy):
    recoverer, _ = recoverer_of(client)
    before = client.config_get("maxmemory-policy")["maxmemory-policy"]
    client.config_set("maxmemory-policy", policy)
    try:
        recoverer.notices.warn_of_eviction()
        recoverer.notices.warn_of_eviction()
    finally:
        client.config_set("maxmemory-policy", before)
    (line,) = lines(caplog, "WARNING")
    assert f"maxmemory-policy {policy}" in line


def test_a_server_that_evicts_nothing_is_not_warned_of(client, caplog):
    recoverer_of(client)[0].notices.warn_of_eviction()
    assert lines(caplog) == []


def test_a_boot_warns_of_eviction_before_the_first_check(caplog):
    with Server("--maxmemory-policy", "allkeys-lru") as server:
        broker = StubBroker()
        broker.add_middleware(StalledCheckerMiddleware(url=server.url, stalled_interval=60_000))
        with booted(broker, "q"):
            wait_until(lambda: any("allkeys-lru" in line for line in lines(caplog, "WARNING")))


MALFORMED = [
    f"redis://:{SECRET}/x@127.0.0.1:1",
    f"redis://:{SECRET}?x@127.0.0.1:1",
    f"redis://:{SECRET}#x@127.0.0.1:1",
    f"redis://:12/{SECRET}@127.0.0.1:1",
    f"redis://:12?{SECRET}@127.0.0.1:1",
    f"redis://:12#{SECRET}@127.0.0.1:1",
    f"redis://:{SECRET}@127.0.0.1:99999",
    f"redis://:{SECRET}@127.0.0.1/mydb",
    f"redis://:{SECRET}@127.0.0.1/O",
    f"redis://:{SECRET}@127.0.0.1:port",
    f"redis://:{SECRET}@[::1",
    f"http://:{SECRET}@127.0.0.1",
    f":{SECRET}@127.0.0.1",
    f"redis://:{SECRET}@127.0.0.1?socket_timeout={SECRET}",
    f"redis://127.0.0.1?passwort={SECRET}",
    "",
    f"redis://:{SECRET}@127.0.0.1".encode(),
    6379,
]


@pytest.mark.parametrize("url", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_url_is_refused_without_showing_a_password(url):
    with pytest.raises(ValueError) as caught:
        StalledCheckerMiddleware(url=url)
    assert str(caught.value).startswith("url (keyword argument) is ")
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_password_shows_in_no_line_and_no_repr(caplog):
    with Server("--requirepass", "another") as server:
        url = server.url.replace("redis://", f"redis://user:{SECRET}@")
        for address in (url, f"redis://user:{SECRET}@127.0.0.1:1"):
            middleware = StalledCheckerMiddleware(url=address, stalled_interval=100)
            broker = StubBroker(middleware=[middleware])
            caplog.clear()
            with booted(broker, "q"):
                wait_until(lambda: lines(caplog, "ERROR"))
            assert SECRET not in caplog.text
            assert SECRET not in repr(middleware)
            assert SECRET not in repr(middleware.settings)


def test_a_password_with_every_odd_character_works_when_percent_encoded():
    with Server("--requirepass", "pa/ss?#@:%") as server:
        url = server.url.replace("redis://", "redis://:pa%2Fss%3F%23%40%3A%25@")
        middleware = StalledCheckerMiddleware(url=url)
        assert middleware.client.ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(server.url).ping()
