"""Projects of web frameworks, with the commands with which they run workers."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile

import pytest

from ..support.framework_app import App
from ..support.servers import Server, wait_until

LOOK_INTO_ADMIN = """
import json
from django.contrib.auth.models import User
from django.test import Client
client = Client()
client.force_login(User.objects.create_superuser("admin"))
print(json.dumps({
    status: client.get("/admin/django_dramatiq/task/", {"status__exact": status}).content.decode()
    for status in ("failed", "done")
}))
"""


def tasks(database: str) -> dict[str, str]:
    """By actor, the status of the tasks that the admin knows."""
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection:
        return dict(connection.execute("SELECT actor_name, status FROM django_dramatiq_task"))


@pytest.mark.timeout(400)
@pytest.mark.at_once
def test_the_admin_of_django_shows_a_job_that_stalled_out_as_failed():
    with Server() as server, server.client() as client, tempfile.TemporaryDirectory() as directory:
        database = f"{directory}/db.sqlite3"
        app = App("django_project", directory, REDIS_URL=server.url, APP_DATABASE=database)
        app.run("manage.py", "migrate")
        app.run("manage.py", "shell", "-c", "from shop.tasks import *; crash.send()")
        assert tasks(database) == {"crash": "enqueued"}
        assert client.lrange("shop:default:wait", 0, -1)

        rundramatiq = ("manage.py", "rundramatiq", "--processes", "1", "--threads", "2")
        with app.started(*rundramatiq) as first:
            first.wait(60)  # its one worker was killed
        # While no worker runs: who sends a message may note that after a worker has noted that it is done.
        app.run("manage.py", "shell", "-c", "from shop.tasks import *; register.send('jane')")
        with app.started(*rundramatiq):
            wait_until(lambda: tasks(database) == {"crash": "failed", "register": "done"}, timeout=60)

        assert client.hget("shop:default:" + client.zrange("shop:default:failed", 0, -1)[0].decode(), "stc") == b"1"
        pages = json.loads(app.run("manage.py", "shell", "-v", "0", "-c", LOOK_INTO_ADMIN).splitlines()[-1])
        assert "crash()" in pages["failed"]
        assert "crash()" not in pages["done"]
        assert "register(&#x27;jane&#x27;)" in pages["done"]


@pytest.mark.timeout(400)
@pytest.mark.at_once
def test_a_job_of_flask_comes_back_in_the_context_of_its_app():
    with Server() as server, server.client() as client, tempfile.TemporaryDirectory() as directory:
        app = App("flask_project", directory, REDIS_URL=server.url, DRAMATIQ_ECHOMQ_LOCK_DURATION="6000")
        app.run("-c", "from app import create_app; create_app().test_client().post('/orders/tea')")

        worker = ("-m", "flask", "--app", "app", "worker", "--processes", "1", "--threads", "2")
        with app.started(*worker) as first:
            first.wait(60)
        with app.started(*worker) as second:
            wait_until(lambda: client.zcard("emq:default:completed"), timeout=60)
            second.terminate()
            assert second.wait(30) == 0

        assert client.lrange("done", 0, -1) == [b"tea of the shop"]
        assert client.get("starts") == b"2"
        [job_id] = client.zrange("emq:default:completed", 0, -1)
        assert client.hget(b"emq:default:" + job_id, "stc") == b"1"
