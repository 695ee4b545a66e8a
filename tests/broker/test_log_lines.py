"""Log lines about jobs: both ids, on one line, and cut."""

from __future__ import annotations

import pytest

from ..support.brokers import lines
from ..support.job_data import add, id_of, take
from ..support.queue_data import put

ODD_IDS = [b"a\nERROR forged", "a\u2028b".encode(), b"\x1b[31mred", b"x" * 10_000]


def lose(client, broker, job_id: str | bytes) -> None:
    """Let a worker find out that the job that it finishes is not its own any more."""
    consumer, [taken] = take(broker)
    client.set(b"emq:q:" + (job_id if isinstance(job_id, bytes) else job_id.encode()) + b":lock", "another")
    consumer.ack(taken)


def test_a_line_about_a_job_names_its_message_as_well(client, broker, caplog):
    job = add(broker)

    lose(client, broker, id_of(job))

    [line] = lines(caplog, "WARNING")
    assert line.startswith(f"Job '{id_of(job)}' (message '{job.message_id}') of queue 'q' did not become completed")


def test_the_job_of_another_program_has_one_id(client, broker, caplog):
    put(client, wait=["a"], jobs={"a": {"data": "1"}})

    lose(client, broker, "a")

    [line] = lines(caplog, "WARNING")
    assert line.startswith("Job 'a' of queue 'q' did not become completed")


@pytest.mark.parametrize("job_id", ODD_IDS, ids=range(len(ODD_IDS)))
@pytest.mark.parametrize("what", ["lost", "undecodable"])
def test_no_id_breaks_a_line(client, broker, caplog, job_id, what):
    put(client, wait=[job_id], jobs={job_id: {"data": "1" if what == "lost" else "{"}})

    if what == "lost":
        lose(client, broker, job_id)
    else:
        take(broker)

    [line] = lines(caplog, "WARNING", "ERROR")
    assert line.isprintable()
    assert len(line) < 600


@pytest.mark.parametrize("scheduler", ODD_IDS, ids=range(len(ODD_IDS)))
def test_no_scheduler_breaks_a_line(client, broker, caplog, scheduler):
    job_id = b"repeat:" + scheduler + b":1"
    put(client, wait=[job_id], jobs={job_id: {"data": "1", "rjk": scheduler}}, repeat={scheduler: 1})
    client.hset(b"emq:q:repeat:" + scheduler, mapping={"name": "work", "pattern": "no\npattern"})

    take(broker)

    [line] = lines(caplog, "WARNING", "ERROR")
    assert "stops: " in line
    assert line.isprintable()
    assert len(line) < 1_000
