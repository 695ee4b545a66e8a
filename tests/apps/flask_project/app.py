import os
import signal

import redis
from dramatiq.middleware import default_middleware
from flask import Flask, current_app
from flask_dramatiq import Dramatiq

from dramatiq_echomq import StalledCheckerMiddleware

dramatiq = Dramatiq(
    middleware=[
        *(middleware() for middleware in default_middleware),
        StalledCheckerMiddleware(stalled_interval=1_000, crash_grace=200),
    ]
)
notes = redis.Redis.from_url(os.environ["REDIS_URL"])


@dramatiq.actor
def crash_once(what):
    if notes.incr("starts") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    notes.rpush("done", f"{what} of {current_app.config['SHOP']}")


def create_app():
    app = Flask(__name__)
    app.config.update(
        SHOP="the shop",
        DRAMATIQ_BROKER="dramatiq_echomq:EchoMQBroker",
        DRAMATIQ_BROKER_URL=os.environ["REDIS_URL"],
    )
    dramatiq.init_app(app)

    @app.post("/orders/<what>")
    def order(what):
        return crash_once.send(what).message_id

    return app
