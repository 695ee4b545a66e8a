"""The page under a prefix of another application: all that it links to is there too."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

from dramatiq_echomq.web import make_app

from ..support.documents import DOCS, snippets
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


def test_the_page_of_the_documentation_is_guarded_by_a_login_of_flask(client, redis_url):
    put_busy_queue(client)
    app = run_snippet("flask import Flask", redis_url)["app"].test_client()

    assert app.get("/queues/").status_code == 401
    assert "2 wait" in text_of(app.get("/queues/", auth=("someone", "x")).text)
    assert app.get("/").status_code == 404


def test_the_page_of_the_documentation_is_guarded_by_the_admin_of_django(client, redis_url, tmp_path):
    put_busy_queue(client)
    code = DJANGO_PROJECT.format(directory=str(tmp_path), snippet=snippet_with("get_wsgi_application", redis_url))

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.stdout.split() == ["403", "403", "200", "True", "404"], done.stderr


#: A project with the wsgi.py of the documentation, and looks at it by nobody, by a user, and by one of the staff.
DJANGO_PROJECT = """
import django
from django.conf import settings
settings.configure(
    DEBUG=False, SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF="urls", USE_TZ=True,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "{directory}/db"}}}},
)
import sys, types
sys.modules["urls"] = types.SimpleNamespace(urlpatterns=[])
{snippet}
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client as DjangoClient
from werkzeug.test import Client
call_command("migrate", verbosity=0)

def look(path, user=None):
    browser = Client(application)
    if user:
        django_browser = DjangoClient()
        django_browser.force_login(user)
        browser.set_cookie("sessionid", django_browser.cookies["sessionid"].value)
    return browser.get(path)

print(look("/queues/").status_code)
print(look("/queues/", User.objects.create_user("user")).status_code)
seen = look("/queues/", User.objects.create_user("staff", is_staff=True))
print(seen.status_code)
print("2 wait" in seen.text)
print(look("/").status_code)
"""


def snippet_with(text: str, redis_url: str) -> str:
    """A snippet of the documentation of the page, for the server of the tests."""
    (found,) = (snippet.text for snippet in snippets("python", DOCS / "page.rst") if text in snippet.text)
    return found.replace("redis://localhost:6379/0", redis_url)


def run_snippet(text: str, redis_url: str) -> dict:
    namespace: dict = {"__name__": "snippet"}
    exec(snippet_with(text, redis_url), namespace)
    return namespace
