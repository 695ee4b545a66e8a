"""What goes wrong is said on a page, with the status that programs look at."""

from __future__ import annotations

import time

import pytest
import redis

from dramatiq_echomq import SettingError
from dramatiq_echomq.protocol.job_info import STATES
from dramatiq_echomq.web import make_app

from ..support.acl import CHECKER_RIGHTS, PAGE_RIGHTS, user
from ..support.documents import text_of as text_of_page
from ..support.operator_data import put_busy_queue
from ..support.pages import Pages, job_path, text_of
from ..support.queue_data import META, put
from ..support.servers import Server, free_port


def test_a_queue_that_is_not_there_has_similar_ones(client, pages):
    put_busy_queue(client)
    put(client, "images", wait=["x"], jobs={"x": {}}, meta=META)

    page = pages.get("/queues/imagse", 404)

    assert "There is no queue 'imagse' under the prefix 'emq'" in text_of(page)
    assert '<a href="/queues/images">images</a>' in page


def test_a_job_that_is_not_there(client, pages):
    put_busy_queue(client)

    assert "Queue 'q' has no job 'nobody'" in text_of(pages.get(job_path("nobody"), 404))


@pytest.mark.parametrize("path", ["/nowhere", "/queues/", "/queues/~zz", "/queues/q/jobs/", "/queues/a/b"])
def test_an_address_that_is_not_there(client, pages, path):
    put_busy_queue(client)

    assert "All queues" in pages.client.get(path, follow_redirects=path.endswith("jobs/")).text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("state=gone", "There is no state 'gone'"),
        ("offset=x", "The offset is 'x', but it must be a whole number"),
        ("offset=-1", "The offset is '-1'"),
        ("offset=" + "9" * 30, "must be a whole number"),
        ("offset=²", "must be a whole number"),
    ],
)
def test_a_question_that_is_wrong(client, pages, query, told):
    put_busy_queue(client)

    assert told in text_of(pages.get(f"/queues/q?{query}", 400))


def test_a_queue_of_another_protocol_does_not_hide_the_others(client, pages):
    put_busy_queue(client)
    put(client, "new", wait=["x"], jobs={"x": {}}, meta={"version": "echomq:2.0"})

    assert "only EchoMQ 1 is understood" in text_of(pages.get("/"))
    assert "2 wait" in text_of(pages.get("/"))
    pages.get("/stalls")
    assert "only EchoMQ 1 is understood" in text_of(pages.get("/queues/new", 409))


def test_a_queue_whose_keys_are_wrong(client, pages):
    client.set("emq:q:wait", "x")
    client.hset("emq:q:meta", "version", "echomq:1")

    assert "emq:q:wait is a string and should be a list" in text_of(pages.get("/queues/q", 409))


def test_redis_is_away(caplog):
    app = make_app(url=f"redis://127.0.0.1:{free_port()}/0", actions=True).test_client()

    for path in ("/", "/stalls", "/queues/q", job_path("x")):
        answer = app.get(path)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "5"
        assert "Redis cannot be used" in answer.text
    assert "Traceback" not in caplog.text
    assert "Redis cannot be used: ConnectionError" in caplog.text


def test_what_a_user_may_not_do_is_said():
    with Server() as server, server.client() as admin:
        put_busy_queue(admin)
        with user(server, admin, "~emq:* +eval +evalsha +scan") as client:
            app = make_app(client).test_client()
            refused = app.get("/queues/q")
            assert refused.status_code == 403
            assert "may not be used by this user" in text_of(refused.text)
        with user(server, admin, "~emq:* +get") as client:
            assert make_app(client).test_client().get("/").status_code == 403


def test_a_command_that_a_script_may_not_run_is_said():
    with Server() as server, server.client() as admin:
        put_busy_queue(admin)
        with user(server, admin, CHECKER_RIGHTS + " +scan") as client:
            said = text_of(Pages(make_app(client)).get("/queues/q?state=failed", 403))

    assert "zrevrange" in said or "can't run this command" in said  # Redis before 7.2 does not say which
    assert "Allow it with ACL SETUSER" in said


def test_a_user_who_may_only_read_sees_everything():
    rights = "~emq:* +@read +eval +evalsha +time +client|list"
    assert f"``{rights}``" in text_of_page("page")
    with Server() as server, server.client() as admin:
        put_busy_queue(admin)
        with user(server, admin, rights) as client:
            pages = Pages(make_app(client, actions=True))
            for path in ("/", "/stalls", "/queues/q", job_path("runs")):
                pages.get(path)
            assert "not known" not in pages.get("/")
            refused = pages.post("/queues/q", "/queues/q", action="pause")
        with user(server, admin, rights.replace("+client|list", "")) as client:
            assert "not known" in Pages(make_app(client)).get("/")

    assert refused.status_code == 403
    assert "may not run" in refused.text


def test_the_rights_of_the_documentation_suffice_for_everything():
    assert f"``{PAGE_RIGHTS}``" in text_of_page("page")
    with Server() as server, server.client() as admin:
        put_busy_queue(admin)
        put(admin, "odd:name", completed={"c": time.time() * 1000}, meta=META)
        with user(server, admin, f"{CHECKER_RIGHTS} {PAGE_RIGHTS}") as client:
            pages = Pages(make_app(client, actions=True))
            assert "odd:name" in pages.get("/")
            assert "at least 1 done" in pages.get("/queues/odd:name")
            for state in STATES:
                pages.get(f"/queues/q?state={state}")
            pages.get("/stalls")
            pages.get(job_path("old"))
            for action, told in {"pause": "is paused", "resume": "is resumed", "check": "Checked"}.items():
                assert told in pages.act_on_queue(action)
            for action, job_id in {"retry": "old", "promote": "later", "remove": "done"}.items():
                assert "1 job " in pages.act_on_jobs(action, job_id)


def test_a_fault_of_our_own_is_logged_and_says_nothing(pages, monkeypatch, caplog):
    monkeypatch.setattr("dramatiq_echomq.web.backing.Backing.queue_names", lambda self: 1 / 0)

    page = pages.get("/", 500)

    assert "fault of the page" in page
    assert "ZeroDivisionError" not in page
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"url": "http://x"}, "a Redis URL such as"),
        ({"client": "x"}, "client"),
        ({"prefix": ""}, "prefix"),
        ({"max_stalled_count": -1}, "max_stalled_count"),
        ({"client": redis.Redis(), "url": "redis://localhost"}, "left out when there is a url"),
    ],
)
def test_what_cannot_be_used_is_refused_at_the_door(arguments, told):
    with pytest.raises(SettingError, match=told):
        make_app(**arguments)


def test_where_nothing_is_said_the_environment_says_which_redis(client, redis_url, monkeypatch):
    put_busy_queue(client)
    monkeypatch.setenv("REDIS_URL", redis_url)

    assert "2 wait" in text_of(make_app().test_client().get("/").text)


def test_an_empty_url_in_the_environment_is_refused_with_its_source(monkeypatch):
    monkeypatch.setenv("REDIS_URL", "")

    with pytest.raises(SettingError, match=r"^url .REDIS_URL. is '', but it must be a Redis URL"):
        make_app()


def test_many_looks_search_for_queues_once_in_a_while(client, pages, monkeypatch):
    put_busy_queue(client)
    monkeypatch.setattr("dramatiq_echomq.web.backing.NAMES_KNOWN_FOR", 600)
    pages.get("/")
    monkeypatch.setattr("dramatiq_echomq.inspection.inspector.find_queue_names", lambda *_: 1 / 0)

    for _ in range(3):
        assert "2 wait" in text_of(pages.get("/"))


def test_a_queue_that_has_gone_meanwhile_is_left_out(client, pages):
    put_busy_queue(client)
    put(client, "other", wait=["x"], jobs={"x": {}}, meta=META)
    pages.get("/")
    client.delete(*client.keys("emq:other:*"))

    assert "other" not in text_of(pages.get("/"))
