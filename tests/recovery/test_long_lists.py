"""In a long `active`, a sweep moves healthy ids out of the way of the stalled ones, and loses none."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledChecker

from ..support.proxy import SendsTwice

pytestmark = pytest.mark.usefixtures("clock")

SIZE = 9_000
DEAD = [f"j{number}" for number in range(0, SIZE, 150)]
OLDEST_FIRST = [f"j{number}" for number in range(SIZE)]
HEALTHY = [job_id for job_id in OLDEST_FIRST if job_id not in set(DEAD)]


@pytest.fixture
def long_queue(client):
    pipeline = client.pipeline(transaction=False)
    pipeline.lpush("emq:q:active", *OLDEST_FIRST)
    pipeline.mset({f"emq:q:{job_id}:lock": "token" for job_id in HEALTHY})
    for job_id in DEAD:
        pipeline.hset(f"emq:q:{job_id}", "name", "work")
    pipeline.execute()
    return client


def active(client) -> list[str]:
    """The ids in `active`, the oldest first."""
    return [job_id.decode() for job_id in reversed(client.lrange("emq:q:active", 0, -1))]


def writes(client) -> int:
    """How many changes the server has seen."""
    return client.info("persistence")["rdb_changes_since_last_save"]


def is_rotation(found: list[str], expected: list[str]) -> bool:
    """Whether these are the same ids in the same order, from wherever it begins."""
    start = expected.index(found[0])
    return found == expected[start:] + expected[:start]


@pytest.mark.parametrize("batch_size", [700, 1_000, 100_000])
@pytest.mark.parametrize("wrap", [lambda client: client, SendsTwice], ids=["once", "sent twice"])
def test_each_dead_job_comes_back_once_and_each_healthy_one_stays(long_queue, batch_size, wrap):
    checker = StalledChecker(wrap(long_queue), batch_size=batch_size)

    assert checker.check("q").marked == len(DEAD)
    assert is_rotation(active(long_queue), OLDEST_FIRST)
    assert checker.check("q").recovered == len(DEAD)
    assert is_rotation(active(long_queue), HEALTHY)
    assert sorted(long_queue.lrange("emq:q:wait", 0, -1)) == sorted(job_id.encode() for job_id in DEAD)


def test_jobs_that_come_and_go_meanwhile_are_neither_lost_nor_doubled(long_queue):
    class Busy:
        """A client between whose calls an old job ends and a new one is fetched."""

        number = 0

        def execute_command(self, *args, **options):
            Busy.number += 1
            new, old = f"new{Busy.number}", HEALTHY[Busy.number * 7]
            long_queue.set(f"emq:q:{new}:lock", "token")
            long_queue.lpush("emq:q:active", new)
            long_queue.lrem("emq:q:active", -1, old)
            return long_queue.execute_command(*args, **options)

        def unlink(self, *names):
            return long_queue.unlink(*names)

    checker = StalledChecker(Busy(), batch_size=500)
    assert checker.check("q").marked == len(DEAD)
    assert checker.check("q").recovered == len(DEAD)
    gone = {HEALTHY[number * 7] for number in range(1, Busy.number + 1)}
    new = {f"new{number}" for number in range(1, Busy.number + 1)}
    assert sorted(active(long_queue)) == sorted({*HEALTHY, *new} - gone)


def test_a_report_moves_nothing(long_queue):
    before = writes(long_queue)

    assert len(StalledChecker(long_queue).inspect("q")) == SIZE
    assert writes(long_queue) == before


def test_where_all_are_healthy_nothing_is_written(client):
    client.lpush("emq:q:active", *OLDEST_FIRST)
    client.mset({f"emq:q:{job_id}:lock": "token" for job_id in OLDEST_FIRST})
    StalledChecker(client).check("another")  # by now it is known that the client may do all that a check does
    before = writes(client)

    assert StalledChecker(client).check("q").marked == 0
    assert writes(client) == before
