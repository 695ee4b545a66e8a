"""What a check costs Redis: so much for each id that it looks at, wherever the stalled ones sit."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import StalledChecker

FEW, MANY = 1_000, 16_000


def cpu_seconds(client: redis.Redis) -> float:
    """What the server has used; other processes on the same machine do not count."""
    used = client.info("cpu")
    return used["used_cpu_user"] + used["used_cpu_sys"]


def cpu_per_id(client: redis.Redis, number: int, *, dead_per_100: int) -> float:
    """What one whole check of so many ids costs the server for each of them; the stalled ones are among the others."""
    client.flushdb()
    ids = [str(at) for at in range(number)]
    dead = [job_id for at, job_id in enumerate(ids) if (at + 1) * dead_per_100 // 100 > at * dead_per_100 // 100]
    pipeline = client.pipeline(transaction=False)
    pipeline.rpush("emq:q:active", *ids)
    if dead:
        pipeline.sadd("emq:q:stalled", *dead)
    for job_id in ids:
        pipeline.hset(f"emq:q:{job_id}", mapping={"name": "work", "data": "[]", "opts": "{}"})
    for job_id in set(ids) - set(dead):
        pipeline.set(f"emq:q:{job_id}:lock", "token")
    pipeline.execute()
    before = cpu_seconds(client)

    check = StalledChecker(client).check("q")

    assert (check.recovered, check.marked) == (len(dead), 0)
    return (cpu_seconds(client) - before) / number


@pytest.mark.parametrize("dead_per_100", [0, 30, 100])
def test_the_cost_is_linear_in_the_ids_that_are_looked_at(client, dead_per_100):
    """An LREM for each stalled job, say, would cost many times as much for each id."""
    StalledChecker(client).check("q")  # so that the server knows the script
    few = [cpu_per_id(client, FEW, dead_per_100=dead_per_100) for _ in range(3)]
    many = [cpu_per_id(client, MANY, dead_per_100=dead_per_100) for _ in range(2)]

    assert min(many) < 4 * min(few)
