"""The page under a prefix of another application: all that it links to is there too."""

from __future__ import annotations

import re

import pytest
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

from dramatiq_echomq.web import make_app

from ..support.operator_data import put_busy_queue
from ..support.pages import job_path, text_of
from ..support.queue_data import state

PREFIX = "/internal/queues"


@pytest.fixture
def browser(client) -> Client:
    put_busy_queue(client)
    host = Flask("host")
    return Client(DispatcherMiddleware(host, {PREFIX: make_app(client, actions=True)}))


def test_everything_that_a_page_leads_to_is_under_the_prefix(browser):
    seen, paths = set(), [f"{PREFIX}/"]
    while paths:
        path = paths.pop()
        answer = browser.get(path)
        assert answer.status_code == 200, path
        seen.add(path)
        for link in re.findall(r'(?:href|src|action)="([^"#]+)', answer.text if "text/html" in answer.mimetype else ""):
            link = link.replace("&amp;", "&")
            assert link.startswith(f"{PREFIX}/"), (path, link)
            if link not in seen and link not in paths and "/find" not in link and not link.endswith("/jobs"):
                paths.append(link)
    assert f"{PREFIX}{job_path('old')}" in seen
    assert len(seen) > 15


def test_a_button_works_under_the_prefix(client, browser):
    page = browser.get(f"{PREFIX}/queues/q")
    assert f"Path={PREFIX}/" in page.headers["Set-Cookie"]
    token = re.search(r'name="token" value="([\w-]+)"', page.text)[1]

    answer = browser.post(f"{PREFIX}/queues/q", data={"token": token, "action": "pause"})

    assert answer.location == f"{PREFIX}/queues/q"
    assert "The queue is paused" in text_of(browser.get(answer.location).text)
    assert "paused" in state(client)


def test_the_prefix_without_a_slash_leads_to_the_page(browser):
    assert browser.get(PREFIX, follow_redirects=True).status_code == 200
