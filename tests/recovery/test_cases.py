"""The five cases that a check tells apart, and what becomes of marks, copies and order."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledCheck, StalledChecker

from ..support.queue_data import BACK, WOKEN, as_data, came_back, put, state


def test_a_locked_job_is_healthy_and_loses_its_mark(client):
    put(client, active=["a"], jobs={"a": {}}, locks=["a"], stalled={"a"})

    assert StalledChecker(client).check("q") == StalledCheck("q")

    assert state(client) == as_data(active=["a"], jobs={"a": {}}, locks=["a"])


def test_a_lock_of_another_type_is_a_lock(client):
    jobs = {"odd": {}, "locked": {}, "dead": {}}
    put(client, active=list(jobs), jobs=jobs, locks=["locked"], stalled=set(jobs), **{"odd:lock": {"owner": "b"}})

    assert StalledChecker(client).check("q").recovered_ids == ("dead",)

    after = state(client)
    assert (after["active"], after["locks"], after["wait"]) == (["odd", "locked"], {"odd", "locked"}, ["dead"])


@pytest.mark.parametrize("marks", [{"other"}, {"a"}], ids=["unmarked", "marked"])
def test_an_id_without_a_job_is_dropped_and_makes_no_ghost(client, marks):
    put(client, active=["a"], stalled=marks)

    assert StalledChecker(client).check("q") == StalledCheck("q", dropped=1)

    assert state(client) == as_data()


@pytest.mark.parametrize("finished", ["completed", "failed"])
@pytest.mark.parametrize("marks", [{"other"}, {"a"}], ids=["unmarked", "marked"])
def test_a_finished_job_leaves_active_and_stays_as_it_is(client, finished, marks):
    put(client, active=["a"], jobs={"a": {"finishedOn": "5"}}, stalled=marks, **{finished: {"a": 5}})

    assert StalledChecker(client).check("q") == StalledCheck("q", dropped=1)

    assert state(client) == as_data(jobs={"a": {"finishedOn": "5"}}, **{finished: {"a": 5}})


def test_a_job_without_a_lock_is_only_marked_by_the_first_check(client):
    put(client, active=["a"], jobs={"a": {}})

    assert StalledChecker(client).check("q") == StalledCheck("q", marked=1)

    assert state(client) == as_data(active=["a"], jobs={"a": {}}, stalled={"a"})


def test_a_marked_job_without_a_lock_comes_back(client):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})

    assert StalledChecker(client).check("q") == StalledCheck("q", recovered=1, recovered_ids=("a",))

    assert state(client) == as_data(wait=["a"], jobs={"a": BACK}, marker=WOKEN, events=came_back("a"))


def test_a_renewal_between_two_checks_starts_the_grace_anew(client):
    put(client, active=["a"], jobs={"a": {}})
    checker = StalledChecker(client)

    checker.check("q")
    put(client, locks=["a"])
    assert checker.check("q") == StalledCheck("q")
    client.delete("emq:q:a:lock")
    assert checker.check("q") == StalledCheck("q", marked=1)

    assert state(client) == as_data(active=["a"], jobs={"a": {}}, stalled={"a"})


def test_a_mark_of_the_same_check_does_not_count(client):
    """Both copies of the id are seen by one check; the first one's mark is no reason to recover the second."""
    put(client, active=["a", "b", "a"], jobs={"a": {}, "b": {}})

    assert StalledChecker(client, batch_size=1).check("q") == StalledCheck("q", marked=2)

    assert state(client) == as_data(active=["a", "b", "a"], jobs={"a": {}, "b": {}}, stalled={"a", "b"})


def test_marks_of_other_runtimes_on_healthy_jobs_do_no_harm(client):
    """Their sweepers mark every active id, locked or not."""
    jobs = {"healthy": {}, "dead": {}}
    put(client, active=["healthy", "dead"], jobs=jobs, locks=["healthy"], stalled={"healthy", "dead"})

    assert StalledChecker(client).check("q") == StalledCheck("q", recovered=1, recovered_ids=("dead",))

    assert state(client) == as_data(
        active=["healthy"],
        wait=["dead"],
        jobs={"healthy": {}, "dead": BACK},
        locks=["healthy"],
        marker=WOKEN,
        events=came_back("dead"),
    )


def test_a_mark_whose_id_is_not_in_active_is_gone_after_the_check(client):
    put(client, active=["a"], wait=["b"], jobs={"a": {}, "b": {}}, stalled={"b", "gone"})

    assert StalledChecker(client).check("q") == StalledCheck("q", marked=1)

    assert state(client) == as_data(active=["a"], wait=["b"], jobs={"a": {}, "b": {}}, stalled={"a"})


def test_an_empty_queue_stays_empty(client):
    assert StalledChecker(client).check("q") == StalledCheck("q")

    assert state(client) == as_data()


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_all_copies_of_a_recovered_id_leave_active(client, batch_size):
    jobs = {"a": {}, "b": {}}
    put(client, active=["a", "b", "a", "a"], jobs=jobs, locks=["b"], stalled={"a"})

    check = StalledChecker(client, batch_size=batch_size).check("q")

    assert check == StalledCheck("q", recovered=1, recovered_ids=("a",))
    assert state(client) == as_data(
        active=["b"], wait=["a"], jobs={"a": BACK, "b": {}}, locks=["b"], marker=WOKEN, events=came_back("a")
    )


def test_a_check_tells_all_cases_apart_in_one_queue(client):
    jobs = {"healthy": {}, "done": {}, "fresh": {}, "dead": {}, "poison": {"stc": "1"}}
    put(
        client,
        active=["healthy", "dead", "ghost", "fresh", "poison", "done"],
        jobs=jobs,
        locks=["healthy"],
        completed={"done": 3},
        stalled={"healthy", "dead", "ghost", "poison"},
    )

    check = StalledChecker(client).check("q")

    assert (check.recovered_ids, check.failed_ids) == (("dead",), ("poison",))
    assert (check.recovered, check.failed, check.marked, check.dropped) == (1, 1, 1, 2)
    after = state(client)
    assert after["active"] == ["healthy", "fresh"]
    assert (after["wait"], after["stalled"], after["completed"]) == (["dead"], {"fresh"}, {"done": 3})
    assert set(after["failed"]) == {"poison"}
    assert "ghost" not in after


def test_queues_do_not_touch_each_other(client):
    for queue in ("q", "q2", "q:active"):
        put(client, queue, active=["a"], jobs={"a": {}}, stalled={"a"})

    StalledChecker(client).check("q2")

    for queue in ("q:active", "q2"):
        client.delete(*client.keys(f"emq:{queue}:*"))
    assert state(client) == as_data(active=["a"], jobs={"a": {}}, stalled={"a"})


@pytest.mark.parametrize("queue", ["q", "q.DQ", "q.XQ"])
def test_a_queue_is_known_by_the_names_of_its_delay_and_dead_letter_queues(client, queue):
    put(client, active=["a"], jobs={"a": {}}, stalled={"a"})

    assert StalledChecker(client).check(queue) == StalledCheck("q", recovered=1, recovered_ids=("a",))


def test_a_queue_under_another_prefix_is_checked_there(client):
    for prefix in ("emq", "{jobs}"):
        put(client, prefix=prefix, active=["a"], jobs={"a": {}}, stalled={"a"})

    StalledChecker(client, prefix="{jobs}").check("q")

    assert state(client) == as_data(active=["a"], jobs={"a": {}}, stalled={"a"})
    assert state(client, prefix="{jobs}") == as_data(wait=["a"], jobs={"a": BACK}, marker=WOKEN, events=came_back("a"))
