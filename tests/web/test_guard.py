"""Nothing is changed unless that is allowed, and meant by somebody who looks at the page."""

from __future__ import annotations

import pytest

from dramatiq_echomq.web import make_app
from dramatiq_echomq.web.guard import TOKEN

from ..support.operator_data import put_busy_queue
from ..support.pages import Pages, job_path, text_of
from ..support.queue_data import dump

PATHS = ["/", "/stalls", "/queues/q", "/queues/q?state=failed", "/queues/none", job_path("old")]


@pytest.fixture(autouse=True)
def _queue(client) -> None:
    put_busy_queue(client)


def test_it_only_shows_unless_told_otherwise(client, looking):
    before = dump(client)

    for path in ("/queues/q", "/queues/q/jobs", "/", "/nowhere"):
        answer = looking.post(path, data={"action": "pause", "id": "old"})
        assert answer.status_code == 403
        assert "--allow-actions" in answer.text
        assert "make_app(actions=True)" in answer.text
    assert dump(client) == before


@pytest.mark.parametrize("path", PATHS)
def test_without_actions_there_is_no_button(looking, path):
    page = looking.get(path).text

    assert 'method="post"' not in page
    assert 'type="checkbox"' not in page
    assert "read-only" in page
    assert "Set-Cookie" not in looking.get(path).headers


@pytest.mark.parametrize("token", [None, "", "x" * 43, "ü" * 43])
def test_a_form_without_the_token_changes_nothing(client, pages, token):
    pages.get("/queues/q")
    before = dump(client)

    answer = pages.client.post("/queues/q", data={"action": "pause", **({} if token is None else {"token": token})})

    assert answer.status_code == 403
    assert "Nothing was changed" in answer.text
    assert dump(client) == before


@pytest.mark.parametrize("cookie", ["", "x", "ü"])
def test_a_token_that_no_page_made_changes_nothing(client, pages, cookie):
    before = dump(client)
    pages.client.set_cookie(TOKEN, cookie)

    answer = pages.client.post("/queues/q", data={"action": "pause", "token": cookie})

    assert answer.status_code == 403
    assert dump(client) == before


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_changes_nothing_even_with_the_token(client, pages, site):
    token, before = pages.token("/queues/q"), dump(client)

    answer = pages.client.post("/queues/q", data={"action": "pause", "token": token}, headers={"Sec-Fetch-Site": site})

    assert answer.status_code == 403
    assert dump(client) == before


def test_any_process_takes_the_token_of_another(client, pages):
    token = pages.token("/queues/q")
    other = Pages(make_app(client, actions=True))
    other.client.set_cookie(TOKEN, token)

    assert other.client.post("/queues/q", data={"action": "pause", "token": token}).status_code == 303


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(pages):
    cookie = pages.client.get("/queues/q").headers["Set-Cookie"]

    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Set-Cookie" not in pages.client.get("/queues/q").headers  # it has one by now


@pytest.mark.parametrize("path", [*PATHS, "/static/page.css", "/nowhere"])
def test_browsers_are_told_to_be_strict(pages, path):
    headers = pages.client.get(path).headers

    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_nothing_that_its_policy_forbids(pages, path):
    page = pages.client.get(path).text

    assert " style=" not in page
    assert "<style" not in page
    assert page.count("<script") == page.count("<script src=")
    assert " on" not in {attribute[:3] for attribute in page.split('="')}
    assert "http://" not in page.replace("http://localhost/", "")
    assert "https://" not in page


def test_pages_are_not_kept_by_browsers_and_files_are_named_after_their_version(pages):
    assert pages.client.get("/queues/q").headers["Cache-Control"] == "no-store"
    assert "page.css?v=" in pages.get("/")


def test_it_answers_only_to_names_that_it_trusts(client):
    app = make_app(client, trusted_hosts=["localhost", "queues.example.com"]).test_client()

    assert app.get("/", base_url="http://localhost:8642").status_code == 200
    assert app.get("/", base_url="http://queues.example.com").status_code == 200
    refused = app.get("/", base_url="http://evil.example.com:8642")
    assert refused.status_code == 400
    assert "evil.example.com" in text_of(refused.text)


def test_a_form_that_is_too_large_is_refused(pages):
    token = pages.token("/queues/q")

    answer = pages.client.post("/queues/q/jobs", data={"token": token, "action": "remove", "id": "x" * 2_000_000})

    assert answer.status_code == 413
