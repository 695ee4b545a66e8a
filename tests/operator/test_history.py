"""What a queue has done lately: jobs that finished, minute by minute, and jobs that stalled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dramatiq_echomq import EchoMQBroker, QueueInspector, QueueNotFound, QueueRefused, StalledChecker
from dramatiq_echomq.inspection.history import EVENTS, Stall
from dramatiq_echomq.protocol import scripts

from ..support.job_data import ack, add, nack
from ..support.queue_data import LIMIT, META, NOW, dump, put

MINUTE = 60_000

pytestmark = pytest.mark.usefixtures("clock")


def last(points: tuple[int, ...], number: int = 5) -> list[int]:
    assert len(points) == 60
    assert not any(points[:-number])
    return list(points[-number:])


@pytest.mark.parametrize("options", [{"keep_completed": 0, "metrics_max_data_points": 60}, {"keep_completed": 100}])
def test_jobs_are_counted_in_the_minute_in_which_they_finished(client, monkeypatch, options):
    broker = EchoMQBroker(client=client, middleware=[], **options)
    for minutes_ago, count in ((4, 2), (1, 3), (0, 1)):
        monkeypatch.setattr(scripts, "TIME", NOW - minutes_ago * MINUTE)
        for _ in range(count):
            add(broker)
            ack(broker)
        add(broker)
        nack(broker)
    monkeypatch.setattr(scripts, "TIME", NOW)
    history = QueueInspector(client).history("q")
    broker.close()

    assert last(history.completed) == [2, 0, 0, 3, 1]
    assert last(history.failed) == [1, 0, 0, 1, 1]
    assert history.at == NOW
    assert history.is_complete == ("metrics_max_data_points" in options)


def test_it_knows_whether_jobs_have_been_removed_meanwhile(client):
    put(client, wait=["w"], jobs={"w": {}}, completed={"old": NOW - 61 * MINUTE, "new": NOW}, meta=META)
    assert QueueInspector(client).history("q").is_complete

    client.zadd("emq:q:failed", {"first": NOW - MINUTE})
    assert not QueueInspector(client).history("q").is_complete


def test_a_stall_says_who_held_the_job_and_what_came_of_it(client, monkeypatch):
    monkeypatch.setattr(scripts, "TIME", 0)  # that of the server, as events have it
    held = {"pb": "host:7", "processedOn": str(NOW)}
    put(client, active=["a", "b"], jobs={"a": held, "b": {**held, "stc": "1"}}, stalled={"a", "b"}, meta=META)
    StalledChecker(client).check("q")

    history = QueueInspector(client).history("q")

    assert all(history.at - 20_000 < stall.at <= history.at for stall in history.stalls)
    assert sorted((replace(stall, at=0) for stall in history.stalls), key=lambda stall: stall.job_id) == [
        Stall(0, "q", "a", "", "host:7", NOW),
        Stall(0, "q", "b", LIMIT, "host:7", NOW),
    ]


@pytest.mark.parametrize("fetched_at", ["1700000000000000", str(2**53 - 1), f"-{2**52}", "1.5", "soon"])
@pytest.mark.parametrize("stalls", ["0", "1"])
def test_a_stall_is_told_whenever_its_job_was_fetched(client, command, monkeypatch, fetched_at, stalls):
    """As by a worker that writes microseconds."""
    monkeypatch.setattr(scripts, "TIME", 0)  # that of the server, as events have it
    held = {"pb": "host:7", "processedOn": fetched_at, "stc": stalls}
    put(client, active=["a"], jobs={"a": held}, stalled={"a"}, meta=META)
    StalledChecker(client).check("q")

    [stall] = QueueInspector(client).history("q").stalls

    assert (stall.job_id, stall.worker) == ("a", "host:7")
    assert f"stall {int(stalls) + 1} of at most 1: held by host:7" in command("explain", "q", "a").out


@pytest.mark.parametrize("time", ["2023-13-45T99:99:99.000", "9999-99-99T00:00:00.000", "-1-1T1"])
def test_a_line_in_a_log_that_only_looks_like_a_stall_breaks_nothing(client, command, time):
    put(client, wait=["j"], jobs={"j": {}}, meta=META)
    put_stall(client, NOW, f"{time}Z stall 1 of at most 1: held by a since {time}Z, back to wait")

    [stall] = QueueInspector(client).history("q").stalls

    assert (stall.job_id, stall.worker, stall.since) == ("j", "", None)
    assert f"it said: {time}Z stall 1" in command("explain", "q", "j").out


def put_stall(client, at: int, line: str, *, reason: str = "") -> None:
    client.rpush("emq:q:j:logs", line)
    client.xadd("emq:q:events", {"event": "stalled", "jobId": "j"}, id=f"{at}-0")
    if reason:
        client.xadd("emq:q:events", {"event": "failed", "jobId": "j", "failedReason": reason}, id=f"{at}-1")


def test_two_stalls_of_a_job_are_told_apart(client):
    put(client, wait=["j"], jobs={"j": {}}, meta=META)
    first = "2023-11-14T22:10:00.000Z stall 1 of at most 1: held by a, b since 2023-11-14T22:09:00.000Z, back to wait"
    put_stall(client, NOW - 200_000, first)
    put_stall(client, NOW, f"2023-11-14T22:13:20.000Z stall 2 of at most 1: held by c, failed: {LIMIT}", reason=LIMIT)

    assert QueueInspector(client).history("q").stalls == (
        Stall(NOW, "q", "j", LIMIT, "c", None),
        Stall(NOW - 200_000, "q", "j", "", "a, b", NOW - 260_000),
    )


@pytest.mark.parametrize(
    "line", ["", "stall", "2023-11-14T22:13:20.000Z stall x", "2023-11-14T20:00:00.000Z stall 1 of"]
)
def test_a_log_that_says_nothing_of_the_stall_is_no_harm(client, line):
    put(client, wait=["j"], jobs={"j": {}}, meta=META)
    put_stall(client, NOW, line)

    assert QueueInspector(client).history("q").stalls == (Stall(NOW, "q", "j", "", "", None),)


def test_no_more_events_are_looked_at_than_is_bounded(client):
    put(client, wait=["j"], jobs={"j": {}}, meta=META)
    client.xadd("emq:q:events", {"event": "stalled", "jobId": "long ago"}, id="1-0")
    for number in range(EVENTS):
        client.xadd("emq:q:events", {"event": "added", "jobId": str(number)}, id=f"{NOW + number}-0")

    history = QueueInspector(client).history("q")

    assert history.stalls == ()
    assert history.since == NOW


def test_a_queue_that_has_done_nothing(client):
    put(client, wait=["j"], jobs={"j": {}}, meta=META)
    before = dump(client)
    history = QueueInspector(client).history("q")

    assert (sum(history.completed), sum(history.failed), history.stalls, history.since) == (0, 0, (), None)
    assert dump(client) == before


def test_a_queue_that_is_not_there_or_not_right(client):
    with pytest.raises(QueueNotFound):
        QueueInspector(client).history("q")
    assert client.dbsize() == 0
    client.set("emq:q:events", "x")
    with pytest.raises(QueueRefused, match="emq:q:events is a string"):
        QueueInspector(client).history("q")
