"""A project with middleware of others, whose jobs stall out: prints what they know of each job then.

Usage: third_party_app.py REDIS_URL DATABASE
"""

from __future__ import annotations

import json
import sys
import uuid

import django
import sentry_sdk
from django.conf import settings
from sentry_sdk.integrations.dramatiq import DramatiqIntegration

redis_url, database = sys.argv[1:]
events: list[dict] = []


class Transport(sentry_sdk.transport.Transport):
    def capture_envelope(self, envelope):
        events.extend(item.payload.json for item in envelope.items if item.type == "event")


sentry_sdk.init(dsn="http://key@localhost/1", transport=Transport, integrations=[DramatiqIntegration()])
settings.configure(
    INSTALLED_APPS=["django_dramatiq"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": database}},
    USE_TZ=True,
    DRAMATIQ_BROKER={
        "BROKER": "dramatiq_echomq.EchoMQBroker",
        "OPTIONS": {"url": redis_url},
        "MIDDLEWARE": [
            "dramatiq.middleware.AgeLimit",
            "dramatiq.middleware.TimeLimit",
            "dramatiq.middleware.Callbacks",
            "dramatiq.middleware.Retries",
            "django_dramatiq.middleware.AdminMiddleware",
            "django_dramatiq.middleware.DbConnectionsMiddleware",
        ],
    },
)
django.setup()

import dramatiq  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django_dramatiq.models import Task  # noqa: E402
from dramatiq_abort import Abortable, abort, backends  # noqa: E402

from dramatiq_echomq import StalledChecker  # noqa: E402
from dramatiq_echomq.signals import send_signal  # noqa: E402

broker = dramatiq.get_broker()
abortable = Abortable(backend=backends.RedisBackend(client=broker.client))
broker.add_middleware(abortable)
call_command("migrate", verbosity=0)


@dramatiq.actor
def work(name):
    print("it ran", file=sys.stderr)


def lost(name: str) -> dramatiq.Message:
    """A message whose worker died after the middleware had seen it begin."""
    message = work.send(name)
    for middleware in broker.middleware:
        if "Admin" in type(middleware).__name__:
            middleware.before_process_message(broker, message)
    return message


def by_sweep(message: dramatiq.Message) -> None:
    job_id, client = message.options["echomq_job_id"], broker.client
    client.lrem("emq:default:wait", 1, job_id)
    client.hset(f"emq:default:{job_id}", mapping={"stc": 1, "ats": 2, "pb": "host:1"})
    client.lpush("emq:default:active", job_id)
    client.sadd("emq:default:stalled", job_id)
    StalledChecker(client).check("default")
    send_signal(broker, "after_queue_swept", "default")


def at_fetch(message: dramatiq.Message) -> None:
    reason = "job stalled more than allowable limit"
    broker.client.hset(f"emq:default:{message.options['echomq_job_id']}", mapping={"stc": 2, "defa": reason})
    worker = dramatiq.Worker(broker, worker_timeout=20, worker_threads=1)
    worker.start()
    broker.join("default", interval=10, timeout=20_000)
    worker.stop()


known = {}
for way in (by_sweep, at_fetch):
    for cancelled in (False, True):
        events.clear()
        message = lost(way.__name__)
        if cancelled:
            abort(message.message_id, abortable)
        way(message)
        task = Task.tasks.get(id=uuid.UUID(message.message_id))
        known[f"{way.__name__}{', cancelled' if cancelled else ''}"] = {
            "django": task.status,
            "django says": task.message.options["traceback"].strip().splitlines()[-1],
            "sentry": [
                (event["transaction"], event["exception"]["values"][-1]["type"], event["extra"]["dramatiq_message_id"])
                for event in events
            ],
            "message": message.message_id,
            "abortable": sorted(abortable.manager.get_abortables()),
        }
broker.close()
print(json.dumps(known))
