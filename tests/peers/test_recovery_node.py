"""Jobs of workers of the `bullmq` package of npm."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import StalledChecker

from ..support.peer import Node, await_lock_end, is_idle, node_of_its_own
from ..support.queue_data import state
from ..support.servers import wait_until

pytestmark = pytest.mark.at_once


def crash(node: Node, client: redis.Redis, *job_ids: str, queue: str = "q") -> None:
    """Let a worker take these jobs, kill it, and see its locks end."""
    with node.worker(queue, "hold", concurrency=len(job_ids)) as holder:
        for job_id in job_ids:
            holder.wait_for("took", job_id)
    await_lock_end(client, queue, *job_ids)


def test_the_job_of_a_killed_worker_is_completed_by_another():
    with node_of_its_own() as (node, client):
        job_id = node.run('return (await queue("q").add("work", { n: 1 })).id')
        crash(node, client, job_id)

        checker = StalledChecker(client)
        assert checker.check("q").marked == 1
        assert checker.check("q").recovered_ids == (job_id,)
        assert state(client)["wait"] == [job_id]

        with node.worker("q", "finish") as finisher:
            finisher.wait_for("completed", job_id)
        job = node.run(f'return queue("q").getJob("{job_id}")')
        assert (job["returnvalue"], job["stalledCounter"]) == ("done by finish", 1)
        assert "active" not in state(client)


def test_an_idle_worker_wakes_at_once_for_a_recovered_job():
    with node_of_its_own() as (node, client):
        job_id = node.run('return (await queue("q").add("work", {})).id')
        crash(node, client, job_id)
        with node.worker("q", "finish", drainDelay=3600) as idle:
            wait_until(lambda: is_idle(client))
            checker = StalledChecker(client)
            checker.check("q")
            checker.check("q")
            idle.wait_for("completed", job_id)


def test_queue_events_tell_of_a_job_that_comes_back_and_of_one_that_is_failed():
    with node_of_its_own() as (node, client):
        node.run('events("told")')
        job_id = node.run('return (await queue("told").add("work", {})).id')
        checker = StalledChecker(client)
        for _ in range(2):
            crash(node, client, job_id, queue="told")
            checker.check("told")
            checker.check("told")

        reason = "job stalled more than allowable limit"
        expected = [
            ["waiting", {"jobId": job_id, "prev": "active"}],
            ["stalled", {"jobId": job_id}],
            ["active", {"jobId": job_id, "prev": "waiting"}],
            ["stalled", {"jobId": job_id}],
            ["failed", {"jobId": job_id, "prev": "active", "failedReason": reason}],
        ]
        wait_until(lambda: ["failed"] in [told[:1] for told in node.run('return events("told")')])
        assert node.run('return events("told")')[-5:] == expected


def test_get_failed_shows_why_a_job_that_kills_its_workers_was_failed():
    with node_of_its_own() as (node, client):
        job_id = node.run('return (await queue("q").add("poison", {})).id')
        checker = StalledChecker(client, max_stalled_count=1)
        for _ in range(2):
            with node.worker("q", "die") as victim:
                victim.wait_for_death()
            await_lock_end(client, "q", job_id)
            checker.check("q")
            last = checker.check("q")

        assert last.failed_ids == (job_id,)
        (failed,) = node.run('return queue("q").getFailed()')
        assert failed["id"] == job_id
        assert failed["failedReason"] == "job stalled more than allowable limit"
        assert (failed["stalledCounter"], failed["attemptsMade"]) == (2, 2)
        assert failed["finishedOn"] >= failed["processedOn"]


def test_a_failed_job_can_be_tried_again():
    with node_of_its_own() as (node, client):
        job_id = node.run('return (await queue("q").add("work", {})).id')
        crash(node, client, job_id)
        checker = StalledChecker(client, max_stalled_count=0)
        checker.check("q")
        assert checker.check("q").failed_ids == (job_id,)

        node.run(f'await (await queue("q").getJob("{job_id}")).retry("failed")')
        with node.worker("q", "finish") as finisher:
            finisher.wait_for("completed", job_id)


def test_the_job_of_a_living_worker_is_never_touched():
    with node_of_its_own() as (node, client):
        job_id = node.run('return (await queue("q").add("work", {})).id')
        lock = f"emq:q:{job_id}:lock"
        checker = StalledChecker(client)
        with node.worker("q", "hold", lockDuration=20_000, lockRenewTime=150) as holder:
            holder.wait_for("took", job_id)
            renewals, left = 0, client.pttl(lock)
            while renewals < 4:
                check = checker.check("q")
                assert (check.marked, check.recovered, check.failed) == (0, 0, 0)
                left, before = client.pttl(lock), left
                renewals += left > before
        assert state(client)["active"] == [job_id]


def test_recovered_jobs_are_taken_in_the_order_of_their_priorities():
    with node_of_its_own() as (node, client):
        added = 'return (await queue("q").add("work", {}, { priority })).id'
        three, one, two = (node.run(f"const priority = {priority}; {added}") for priority in (3, 1, 2))
        crash(node, client, three, one, two)
        checker = StalledChecker(client)
        checker.check("q")
        assert checker.check("q").recovered == 3
        assert set(state(client)["prioritized"]) == {one, two, three}

        with node.worker("q", "finish") as finisher:
            finisher.wait_for("completed", three)
        assert [job_id for what, *job_id in finisher.said if what == "took"] == [[one], [two], [three]]


def test_a_job_that_is_recovered_while_its_queue_is_paused_comes_after_resume():
    with node_of_its_own() as (node, client):
        held, waiting = (node.run('return (await queue("q").add("work", {})).id') for _ in range(2))
        crash(node, client, held)
        node.run('await queue("q").pause()')
        checker = StalledChecker(client)
        checker.check("q")
        assert checker.check("q").recovered_ids == (held,)

        with node.worker("q", "finish") as finisher:
            wait_until(lambda: is_idle(client))
            assert checker.check("q").recovered == 0
            assert ["took", held] not in finisher.said
            assert state(client)["paused"] == [held, waiting]
            node.run('await queue("q").resume()')
            finisher.wait_for("completed", held)
            finisher.wait_for("completed", waiting)


def test_a_deduplication_id_is_free_again_when_its_job_was_failed():
    with node_of_its_own() as (node, client):
        add = 'return (await queue("q").add("work", {}, { deduplication: { id: "only one" } })).id'
        first = node.run(add)
        assert node.run(add) == first
        crash(node, client, first)
        checker = StalledChecker(client, max_stalled_count=0)
        checker.check("q")
        assert checker.check("q").failed_ids == (first,)
        assert node.run(add) != first


def test_a_job_of_a_job_scheduler_is_not_failed_and_its_scheduler_goes_on():
    with node_of_its_own() as (node, client):
        job_id = node.run('return (await queue("q").upsertJobScheduler("daily", { every: 86400000 })).id')
        crash(node, client, job_id)
        checker = StalledChecker(client, max_stalled_count=0)
        checker.check("q")
        assert checker.check("q").recovered_ids == (job_id,)
        with node.worker("q", "finish") as finisher:
            finisher.wait_for("completed", job_id)
        assert node.run('return queue("q").getJobSchedulersCount()') == 1
        assert node.run('return queue("q").getDelayedCount()') == 1
