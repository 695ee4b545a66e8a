"""Jobs of workers of the `bullmq` package of PyPI."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import pytest

from dramatiq_echomq import StalledChecker

from ..support.peer import Peer, await_lock_end, is_idle
from ..support.queue_data import state
from ..support.servers import Server, wait_until

bullmq = pytest.importorskip("bullmq")

pytestmark = pytest.mark.at_once


@contextlib.contextmanager
def peers():
    """A client of a new server, a way to run something with a BullMQ queue there, which is
    ``queue(lambda q: q.add("work", {}))``, and one to start a worker.
    """

    def use(work):
        async def run():
            queue = bullmq.Queue("q", {"connection": server.url, "prefix": "emq"})
            try:
                return await work(queue)
            finally:
                await queue.close()

        return asyncio.run(run())

    def worker(mode: str, options: str = "{}") -> Peer:
        return Peer(sys.executable, "worker.py", server.url, "q", mode, options)

    with Server() as server, server.client() as client:
        yield client, use, worker


def add(queue, **options) -> str:
    async def work(q):
        return (await q.add("work", {"n": 1}, options)).id

    return queue(work)


def test_the_job_of_a_killed_worker_is_completed_by_another():
    with peers() as (client, queue, worker):
        job_id = add(queue)
        with worker("hold") as holder:
            holder.wait_for("took", job_id)
        await_lock_end(client, "q", job_id)

        checker = StalledChecker(client)
        assert checker.check("q").marked == 1
        assert checker.check("q").recovered_ids == (job_id,)
        assert state(client)["wait"] == [job_id]

        with worker("finish") as finisher:
            finisher.wait_for("completed", job_id)
        assert queue(lambda q: q.getJobState(job_id)) == "completed"
        assert "active" not in state(client)


def test_an_idle_worker_wakes_at_once_for_a_recovered_job():
    with peers() as (client, queue, worker):
        job_id = add(queue)
        with worker("hold") as holder:
            holder.wait_for("took", job_id)
        await_lock_end(client, "q", job_id)
        with worker("finish", '{"drainDelay": 3600}') as idle:
            wait_until(lambda: is_idle(client))
            checker = StalledChecker(client)
            checker.check("q")
            checker.check("q")
            idle.wait_for("completed", job_id)


def test_a_job_that_keeps_killing_its_workers_is_failed_and_says_why():
    with peers() as (client, queue, worker):
        job_id = add(queue)
        checker = StalledChecker(client, max_stalled_count=2)
        for _ in range(3):
            with worker("die") as victim:
                victim.wait_for_death()
            await_lock_end(client, "q", job_id)
            checker.check("q")
            last = checker.check("q")

        assert last.failed_ids == (job_id,)
        (failed,) = queue(lambda q: q.getFailed())
        assert failed.id == job_id
        assert failed.failedReason == "job stalled more than allowable limit"
        assert failed.attemptsMade == 3
        assert queue(lambda q: q.getJobState(job_id)) == "failed"


def test_a_job_that_stalls_with_its_last_attempt_is_failed_and_says_why():
    with peers() as (client, queue, worker):
        job_id = add(queue, attempts=1)
        with worker("die") as victim:
            victim.wait_for_death()
        await_lock_end(client, "q", job_id)
        checker = StalledChecker(client, max_stalled_count=5)
        checker.check("q")
        assert checker.check("q").failed_ids == (job_id,)
        (failed,) = queue(lambda q: q.getFailed())
        assert failed.failedReason == "job stalled with no attempts left"


def test_a_failed_job_can_be_tried_again():
    with peers() as (client, queue, worker):
        job_id = add(queue)
        with worker("die") as victim:
            victim.wait_for_death()
        await_lock_end(client, "q", job_id)
        checker = StalledChecker(client, max_stalled_count=0)
        checker.check("q")
        assert checker.check("q").failed_ids == (job_id,)

        queue(lambda q: q.retryJobs({"state": "failed"}))
        with worker("finish") as finisher:
            finisher.wait_for("completed", job_id)


def test_the_job_of_a_living_worker_is_never_touched():
    with peers() as (client, queue, worker):
        job_id = add(queue)
        lock = f"emq:q:{job_id}:lock"
        checker = StalledChecker(client)
        with worker("hold", '{"lockDuration": 20000, "lockRenewTime": 150}') as holder:
            holder.wait_for("took", job_id)
            renewals, left = 0, client.pttl(lock)
            while renewals < 4:
                check = checker.check("q")
                assert (check.marked, check.recovered, check.failed) == (0, 0, 0)
                left, before = client.pttl(lock), left
                renewals += left > before
        assert state(client)["active"] == [job_id]
