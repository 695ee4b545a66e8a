"""A move of messages whose process is killed, again and again."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import redis
from dramatiq.brokers.redis import RedisBroker

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.migration import move_from_redis_broker

from ..support.environment import ENVIRONMENT
from ..support.job_data import message
from ..support.servers import Server

MESSAGES = 2_000

MOVE = """
import sys
from dramatiq.brokers.redis import RedisBroker
from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.migration import move_from_redis_broker

old, new = RedisBroker(url=sys.argv[1], middleware=[]), EchoMQBroker(url=sys.argv[1], middleware=[])
move_from_redis_broker(old, new, ["q"], progress=lambda move: print(move.moved, flush=True))
"""


def move_and_be_killed(url: str, after: int) -> None:
    """Start a move, and kill it once it has moved so many messages."""
    process = subprocess.Popen([sys.executable, "-c", MOVE, url], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        for line in process.stdout:
            if int(line) >= after:
                break
    finally:
        process.kill()
        process.communicate()


@pytest.mark.at_once
def test_no_message_is_lost_or_doubled_when_moves_are_killed():
    with Server() as server, redis.Redis.from_url(server.url) as client:
        old, new = RedisBroker(client=client, middleware=[]), EchoMQBroker(client=client, middleware=[])
        sent = [old.enqueue(message(number)).message_id for number in range(MESSAGES)]
        for after in (0, 100, 300):
            move_and_be_killed(server.url, after)

        [move] = move_from_redis_broker(old, new, ["q"])

        jobs = [job_id.decode() for job_id in reversed(client.lrange("emq:q:wait", 0, -1))]
        moved = [message_id_of(client, job_id) for job_id in jobs]
        assert sorted(moved) == sorted(sent)
        assert (move.left, client.exists("emq:q:echomq:moved")) == (0, 0)
        new.close()


def message_id_of(client: redis.Redis, job_id: str) -> str:
    return json.loads(client.hget(f"emq:q:{job_id}", "data"))["message_id"]
