"""The page in a real browser: it obeys the policy, updates itself, and needs no script."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from flask import Flask, Response, request

from dramatiq_echomq.web import make_app

from ..support.browser import served, visit
from ..support.operator_data import put_busy_queue
from ..support.pages import job_path
from ..support.queue_data import META, put
from ..support.servers import Server

HOSTILE = "<img src=x onerror=document.title=1>"


@contextlib.contextmanager
def busy_page(**options) -> Iterator[tuple]:
    """A server with a busy queue and a hostile one, and the page that shows it."""
    with Server() as server, server.client() as client:
        put_busy_queue(client)
        put(client, HOSTILE, wait=["x"], jobs={"x": {"name": HOSTILE}}, meta=META)
        app = make_app(client, **options)
        with served(app) as url:
            yield client, app, url


@pytest.mark.at_once
def test_no_page_breaks_its_policy_and_nothing_in_it_runs():
    with busy_page(actions=True) as (_, _, url):
        for path in ("/", "/stalls", "/queues/q?state=failed", job_path("old"), job_path("x", HOSTILE), "/queues/none"):
            seen = visit(url + path)
            assert [line for line in seen.complaints if "404" not in line] == []
            assert "EchoMQ</title>" in seen.page
            assert "<img" not in seen.page


@pytest.mark.at_once
def test_a_page_updates_itself():
    with busy_page() as (client, app, url):

        @app.after_request
        def add_a_job(response):
            client.lpush("emq:q:wait", f"job{client.llen('emq:q:wait')}")
            return response

        seen = visit(f"{url}/queues/q?state=wait", milliseconds=7_000)

        assert "job3" in seen.text
        assert seen.complaints == []
        assert "Updated at" in seen.page


@pytest.mark.at_once
def test_a_page_says_when_it_is_not_up_to_date():
    with busy_page() as (_, app, url):
        looks = []

        @app.before_request
        def be_away_later():
            looks.append(request.path)
            return ("<h1>away</h1>", 503) if looks.count("/queues/q") > 1 else None

        seen = visit(f"{url}/queues/q?state=wait", milliseconds=7_000)

        assert "Not up to date (away); it tries again." in seen.page
        assert "waits" in seen.text


@pytest.mark.at_once
def test_a_page_works_without_its_script():
    with busy_page(actions=True) as (_, app, url):
        instead_of_the_script(app, "")

        seen = visit(f"{url}/queues/q?state=failed")

        assert "old" in seen.text
        assert "Retry chosen" in seen.text
        assert "Load the page anew" in seen.page


@pytest.mark.at_once
def test_a_button_is_pressed():
    with busy_page(actions=True) as (client, app, url):
        instead_of_the_script(app, "document.querySelector('button[value=pause]')?.click()")

        seen = visit(f"{url}/queues/q", milliseconds=3_000)

        assert "The queue is paused, for workers of every kind." in seen.text
        assert client.hget("emq:q:meta", "paused") == b"1"


@pytest.mark.at_once
def test_another_site_cannot_press_a_button():
    with busy_page(actions=True) as (client, _, url):
        evil = Flask("evil")

        @evil.get("/")
        def press_a_button():
            return f'''<form method="post" action="{url}/queues/q"><input name="action" value="pause">
                <input name="token" value=""></form><script>document.forms[0].submit()</script>'''

        with served(evil) as other_site:
            seen = visit(other_site, milliseconds=3_000)

        assert "This form was not sent from a page of here" in seen.text
        assert client.hget("emq:q:meta", "paused") is None


def instead_of_the_script(app: Flask, script: str) -> None:
    """Let a page do something else than to update itself."""

    @app.before_request
    def serve_it():
        return Response(script, mimetype="text/javascript") if request.path == "/static/live.js" else None
