"""What Prometheus is told of queues, by a collector and by the command."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
import redis
from prometheus_client import CollectorRegistry

from dramatiq_echomq.prometheus import QueueCollector, queue_collector

from ..support.environment import ENVIRONMENT
from ..support.operator_data import put_busy_queue
from ..support.queue_data import dump, put
from ..support.servers import Server

EXISTS = {"meta": {"version": "echomq:1"}}


def scraped(collector: QueueCollector) -> dict[str, float]:
    """What a scrape says: each series without its namespace, and its value."""
    registry = CollectorRegistry()
    registry.register(collector)
    found = {}
    for metric in registry.collect():
        for sample in metric.samples:
            labels = ",".join(sample.labels.values())
            found[f"{sample.name.removeprefix('dramatiq_echomq_')}({labels})"] = sample.value
    return found


@pytest.mark.usefixtures("clock")
def test_each_queue_is_told_of_by_state_with_its_ages(client):
    put_busy_queue(client)
    client.zadd("emq:q:delayed", {"later": float("inf")})  # as with a delay of Number.MAX_VALUE in Node.js
    client.sadd("emq:q:stalled", "runs")
    client.hset("emq:q:meta", "paused", "1")
    before = dump(client)

    assert scraped(QueueCollector(client)) == {
        "redis_up()": 1,
        "queue_refused(q)": 0,
        "queue_jobs(q,wait)": 2,
        "queue_jobs(q,paused)": 0,
        "queue_jobs(q,active)": 1,
        "queue_jobs(q,delayed)": 1,
        "queue_jobs(q,prioritized)": 1,
        "queue_jobs(q,waiting_children)": 1,
        "queue_jobs(q,completed)": 1,
        "queue_jobs(q,failed)": 2,
        "queue_marked_jobs(q)": 1,
        "queue_oldest_waiting_seconds(q)": 7,
        "queue_oldest_active_seconds(q)": 9,
        "queue_paused(q)": 1,
        "queue_workers(q)": 0,
    }
    assert dump(client) == before


def test_a_queue_that_cannot_be_used_is_said_to_be_so_and_hides_no_other(client):
    put(client, "odd", meta={"version": "echomq:2"})
    put(client, "fine", wait=["a"], jobs={"a": {}}, **EXISTS)

    found = scraped(QueueCollector(client))

    assert found["queue_jobs(fine,wait)"] == 1
    assert {name: value for name, value in found.items() if "(odd" in name} == {"queue_refused(odd)": 1}


def test_nothing_is_said_of_a_queue_that_is_not_there_or_not_there_any_more(client):
    put(client, "there", **EXISTS)
    put(client, "leaves", **EXISTS)
    every, some = QueueCollector(client), QueueCollector(client, queues=["there", "nowhere", "leaves"])
    assert {"queue_paused(there)", "queue_paused(leaves)"} <= scraped(every).keys() & scraped(some).keys()

    client.delete("emq:leaves:meta")

    for collector in every, some:
        assert [name for name in scraped(collector) if "paused(" in name] == ["queue_paused(there)"]


def test_all_keys_are_searched_for_queues_only_now_and_then(client, monkeypatch):
    put(client, "first", **EXISTS)
    collector = QueueCollector(client)
    scraped(collector)
    put(client, "second", **EXISTS)
    assert "queue_paused(second)" not in scraped(collector)

    monkeypatch.setattr(queue_collector, "NAMES_KEPT_FOR", 0)
    assert "queue_paused(second)" in scraped(collector)


def test_nothing_but_that_is_said_while_redis_is_down(caplog):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = redis.Redis(port=free.getsockname()[1], retry=None)
        assert scraped(QueueCollector(client)) == {"redis_up()": 0}
    assert "Redis cannot be asked how queues are: ConnectionError" in caplog.text


@pytest.mark.at_once
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_answers_prometheus_until_it_is_told_to_stop(ending):
    with Server() as server, redis.Redis.from_url(server.url) as client:
        put(client, "images", wait=["a"], jobs={"a": {}}, **EXISTS)
        words = ["metrics", "images", "imagse", "--port", "0", "--json", "--url", server.url]
        command = [sys.executable, "-m", "dramatiq_echomq", *words]
        environment = {**ENVIRONMENT, "PROMETHEUS_MULTIPROC_DIR": ""}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment, **pipes) as process:
            try:
                url = process.stderr.readline().split()[-1]
                assert process.stderr.readline() == (
                    "A queue is left out while it is not there: there is no queue 'imagse' under the prefix 'emq'; "
                    "did you mean 'images'?\n"
                )
                assert json.loads(process.stdout.readline()) == {"url": url}
                with urllib.request.urlopen(url, timeout=20) as answer:
                    assert 'dramatiq_echomq_queue_jobs{queue_name="images",state="wait"} 1.0' in answer.read().decode()
                server.kill()
                with urllib.request.urlopen(url, timeout=20) as answer:
                    assert "dramatiq_echomq_redis_up 0.0" in answer.read().decode()
                process.send_signal(ending)
                assert process.wait(20) == 0
            finally:
                process.kill()


def test_the_command_says_what_is_wrong(command, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = command("metrics", "--port", port)
    assert (done.code, done.err) == (4, f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n")

    monkeypatch.setattr("dramatiq_echomq.cli.metrics.find_spec", lambda name: None)
    done = command("metrics")
    assert (done.code, done.err) == (
        2,
        'Error: this needs prometheus_client, not installed here: pip install "dramatiq-echomq[prometheus]"\n',
    )
