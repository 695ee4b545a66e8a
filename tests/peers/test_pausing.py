"""A queue that is paused and resumed by BullMQ 5, BullMQ 6, a Dramatiq broker and what only sets the flag.

BullMQ 5 moves the jobs of a paused queue to `paused`, and overwrites what is where it moves them to. BullMQ 6
leaves them in `wait`. An Elixir program sets and removes the flag.
"""

from __future__ import annotations

import random
import time

import pytest

from dramatiq_echomq import StalledChecker

from ..support.job_data import JOB, add, id_of, take
from ..support.queue_data import put, state

PAUSERS = ["bullmq 5", "bullmq 6", "dramatiq", "elixir"]


class Hands:
    """Everybody who has a hand in the queue."""

    def __init__(self, client, broker, node, node6) -> None:
        self.client, self.broker = client, broker
        self.nodes = {"bullmq 5": node, "bullmq 6": node6}
        self.added: list[str] = []

    def pause(self, who: str) -> None:
        if who in self.nodes:
            self.nodes[who].run('await queue("q").pause()')
        elif who == "dramatiq":
            self.broker.pause("q")
        else:
            self.client.hset("emq:q:meta", "paused", 1)

    def resume(self, who: str) -> None:
        if who in self.nodes:
            self.nodes[who].run('await queue("q").resume()')
        elif who == "dramatiq":
            self.broker.resume("q")
        else:
            self.client.hdel("emq:q:meta", "paused")

    def add(self, who: str) -> None:
        """Add a job, later than the one before by a ms at least: those of the same ms have no order."""
        earlier = int(time.time() * 1000)
        while int(time.time() * 1000) == earlier:
            pass
        if who in self.nodes:
            self.added.append(self.nodes[who].run('return (await queue("q").add("work", [])).id'))
        else:
            self.added.append(id_of(add(self.broker)))

    def do(self, what: str, who: str) -> None:
        getattr(self, what)(who)

    def run_all(self) -> list[str]:
        """Resume the queue and take all jobs."""
        self.resume("elixir")
        consumer, messages = take(self.broker, len(self.added) + 1)
        for message in messages:
            consumer.ack(message)
        return [message.job.job_id for message in messages]


@pytest.fixture
def hands(client, broker, node, node6):
    return Hands(client, broker, node, node6)


@pytest.mark.parametrize("seed", range(25))
def test_no_message_is_lost_or_changes_places_whoever_pauses_and_resumes(hands, seed):
    chance, done = random.Random(seed), []
    for _ in range(14):
        what = chance.choice(["pause", "resume", "add", "add"])
        who = "dramatiq" if what == "add" else chance.choice(PAUSERS)
        done.append((what, who))
        hands.do(what, who)
    assert hands.run_all() == hands.added, done


@pytest.mark.parametrize("seed", range(25))
def test_no_job_is_lost_whoever_adds_it_beside_a_worker_that_looks_now_and_then(hands, seed):
    chance, done = random.Random(seed), []
    for _ in range(14):
        what = chance.choice(["pause", "resume", "add", "add"])
        who = chance.choice(PAUSERS[:3] if what == "add" else PAUSERS)
        done.append((what, who))
        hands.do(what, who)
        StalledChecker(hands.client).check("q")
    assert hands.run_all() == hands.added, done


def test_a_message_joins_the_jobs_that_bullmq_6_has_left_in_wait(hands):
    for what, who in [("add", "bullmq 6"), ("add", "bullmq 6"), ("pause", "bullmq 6"), ("add", "bullmq 6")]:
        hands.do(what, who)
    hands.add("dramatiq")

    assert hands.nodes["bullmq 6"].run('return (await queue("q").getWaiting()).map((job) => job.id)') == hands.added
    assert hands.nodes["bullmq 6"].run('return queue("q").getJobCounts("wait")') == {"wait": 4}
    hands.resume("bullmq 5")
    assert hands.run_all() == hands.added


@pytest.mark.parametrize("look", ["fetch", "check", "send"])
def test_what_a_resume_left_in_paused_comes_back_in_order(client, broker, look):
    put(client, paused=["c", "b", "a"], wait=["d"], jobs=dict.fromkeys("abcd", JOB))
    if look == "fetch":
        assert [message.job.job_id for message in take(broker, 2)[1]] == ["a", "b"]
    elif look == "check":
        StalledChecker(client).check("q")
        assert client.zscore("emq:q:marker", "0") == 0
    else:
        add(broker)
    assert "paused" not in state(client)
    assert [job_id for job_id in state(client)["wait"] if job_id in "abcd"] == list("dc" if look == "fetch" else "dcba")


@pytest.mark.parametrize(("waiting", "paused"), [(3_000, 5), (5, 3_000)])
@pytest.mark.parametrize("what", ["pause", "resume"])
def test_the_shorter_list_moves_when_both_hold_jobs(client, broker, waiting, paused, what):
    wait, paused_ids = [f"w{at}" for at in range(waiting)], [f"p{at}" for at in range(paused)]
    put(client, wait=wait, paused=paused_ids)
    put(client, jobs={wait[-1]: {"timestamp": "1"}, paused_ids[-1]: {"timestamp": "2"}})
    getattr(broker, what)("another")
    before = client.info("commandstats")

    getattr(broker, what)("q")

    def calls(command: str) -> int:
        return sum(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"] * sign for stats, sign in both)

    both = [(client.info("commandstats"), 1), (before, -1)]
    assert state(client)["paused" if what == "pause" else "wait"] == paused_ids + wait
    assert calls("rename") <= 1
    assert calls("lpush") + calls("rpush") == 1
