"""Ways in which a worker loses its job ``a`` of queue ``q``."""

from __future__ import annotations

import redis

from dramatiq_echomq import StalledChecker


def taken_by_another(client: redis.Redis) -> None:
    client.set("emq:q:a:lock", "of another worker")


def back_in_wait(client: redis.Redis) -> None:
    client.delete("emq:q:a:lock")
    StalledChecker(client).check("q")
    StalledChecker(client).check("q")


def removed(client: redis.Redis) -> None:
    client.delete("emq:q:a", "emq:q:a:lock", "emq:q:active")
