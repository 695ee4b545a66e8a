"""A sweep that is cut into calls does what one whole check does, whatever happens in between."""

from __future__ import annotations

import pytest

from dramatiq_echomq import StalledCheck, StalledChecker

from ..support.queue_data import BACK, as_data, came_back, is_call_of_check, put, put_mixture, state


class Between:
    """A client that does something between the calls of a sweep.

    Parameters:
      client(redis.Redis)
      steps(dict): What to do after the call with this number, from 1.
    """

    def __init__(self, client, steps):
        self.client = client
        self.steps = steps
        self.calls = 0

    def execute_command(self, *args, **options):
        reply = self.client.execute_command(*args, **options)
        if is_call_of_check(args):
            self.calls += 1
            self.steps.get(self.calls, lambda: None)()
        return reply

    def unlink(self, *names):
        return self.client.unlink(*names)


@pytest.fixture
def loaded(client):
    """A client of a server that knows the script: each call of a check is one command."""
    StalledChecker(client).check("q")
    return client


@pytest.mark.parametrize("batch_size", [1, 3, 7, 1000])
@pytest.mark.usefixtures("clock")
def test_every_batch_size_gives_the_state_of_one_whole_check(client, batch_size):
    outcomes = []
    for size in (100_000, batch_size):
        client.flushdb()
        put_mixture(client)
        checker = StalledChecker(client, batch_size=size)
        outcomes.append([(checker.check("q"), state(client)) for _ in range(3)])

    assert outcomes[0] == outcomes[1]


def test_a_mixture_has_every_case_in_it(client):
    put_mixture(client)

    check = StalledChecker(client).check("q")

    assert min(check.recovered, check.failed, check.marked, check.dropped, len(check.oddities)) > 2


def test_a_sweep_looks_at_no_more_than_batch_size_ids_per_call(loaded):
    put(loaded, active=[str(number) for number in range(25)])
    between = Between(loaded, {})

    assert StalledChecker(between, batch_size=10).check("q").dropped == 25

    assert between.calls == 3


@pytest.mark.parametrize("marked", [True, False])
def test_more_than_8000_ids_go_into_one_call(client, marked):
    ids = [str(number) for number in range(20_500)]
    with client.pipeline() as pipeline:
        for job_id in ids:
            pipeline.hset(f"emq:q:{job_id}", "name", "work")
        pipeline.execute()
    put(client, active=ids, **({"stalled": set(ids)} if marked else {}))

    check = StalledChecker(client, batch_size=100_000).check("q")

    if marked:
        assert (check.recovered, client.lrange("emq:q:wait", 0, -1)) == (20_500, [i.encode() for i in ids])
        assert client.exists("emq:q:active", "emq:q:stalled") == 0
    else:
        assert (check.marked, client.scard("emq:q:stalled"), client.llen("emq:q:active")) == (20_500, 20_500, 20_500)


def finish(client, job_id):
    client.lrem("emq:q:active", 0, job_id)
    client.delete(f"emq:q:{job_id}:lock")
    client.zadd("emq:q:completed", {job_id: 1})


@pytest.mark.parametrize(
    "finished", [("l1",), ("l2",), ("l1", "l2"), ("l2", "l1", "l3"), ("l3",), ("l4", "l5")], ids=str
)
def test_jobs_that_finish_between_two_calls_hide_no_stalled_job(loaded, finished):
    """The second call goes on at the right place although the list has become shorter."""
    active = ["d4", "l5", "d3", "l4", "d2", "l3", "l2", "d1", "l1"]  # the oldest is l1
    dead = {"d1", "d2", "d3", "d4"}
    put(loaded, active=active, jobs={job_id: {} for job_id in active}, stalled=dead, locks=set(active) - dead)
    between = Between(loaded, {1: lambda: [finish(loaded, job_id) for job_id in finished]})

    check = StalledChecker(between, batch_size=3).check("q")

    assert check.recovered_ids == ("d1", "d2", "d3", "d4")
    assert state(loaded).get("active", []) == [i for i in active if i not in dead and i not in finished]


def test_jobs_that_are_taken_between_two_calls_hide_no_stalled_job(loaded):
    put(loaded, active=["d2", "l2", "d1", "l1"], jobs={i: {} for i in ("d1", "d2", "l1", "l2")}, locks=["l1", "l2"])
    put(loaded, stalled={"d1", "d2"})

    def take():
        for number in range(5):
            put(loaded, jobs={f"n{number}": {}}, locks=[f"n{number}"])
            loaded.lpush("emq:q:active", f"n{number}")

    between = Between(loaded, {1: take, 2: take})

    assert StalledChecker(between, batch_size=2).check("q").recovered_ids == ("d1", "d2")
    assert set(state(loaded)["active"]) == {"l1", "l2", "n0", "n1", "n2", "n3", "n4"}


def test_a_lock_that_ends_between_two_calls_is_a_first_sighting(loaded):
    put(loaded, active=["b", "a"], jobs={"a": {}, "b": {}}, locks=["a", "b"], stalled={"gone"})
    between = Between(loaded, {1: lambda: loaded.delete("emq:q:a:lock", "emq:q:b:lock")})

    assert StalledChecker(between, batch_size=1).check("q") == StalledCheck("q", marked=1)

    assert state(loaded)["stalled"] == {"b"}


def test_a_job_that_comes_back_and_dies_again_within_one_sweep_is_not_lost(loaded):
    """Its new place in `active` is no forgotten copy of the old one: it has been fetched since."""
    put(loaded, active=["b", "a"], jobs={"a": {"ats": "1"}, "b": {}}, locks=["b"], stalled={"a"})

    def take_and_die():
        assert loaded.lmove("emq:q:wait", "emq:q:active", "RIGHT", "LEFT") == b"a"
        loaded.hincrby("emq:q:a", "ats", 1)

    checker = StalledChecker(Between(loaded, {1: take_and_die}), batch_size=1, max_stalled_count=5)

    assert checker.check("q") == StalledCheck("q", recovered=1, recovered_ids=("a",), marked=1)
    after = state(loaded)
    assert (after["active"], after["stalled"], after["a"]["stc"]) == (["a", "b"], {"a"}, "1")
    assert StalledChecker(loaded, max_stalled_count=5).check("q").recovered_ids == ("a",)


def test_a_mark_that_another_runtime_makes_within_a_sweep_goes_with_its_job(loaded):
    """Else the job's next fetch would start with a mark, and have no grace."""
    put(loaded, active=["b", "a"], jobs={"a": {}, "b": {}}, stalled={"a", "b"})
    between = Between(loaded, {1: lambda: put(loaded, stalled={"b"})})

    assert StalledChecker(between, batch_size=1).check("q").recovered_ids == ("a", "b")

    assert "stalled" not in state(loaded)


def test_a_second_sweep_in_the_middle_of_the_first_recovers_nothing_twice(loaded):
    ids = [str(number) for number in range(9)]
    put(loaded, active=ids, jobs={job_id: {} for job_id in ids}, stalled=set(ids))
    checks = []
    between = Between(loaded, {2: lambda: checks.append(StalledChecker(loaded, batch_size=2).check("q"))})

    checks.append(StalledChecker(between, batch_size=2).check("q"))

    assert sum(check.recovered for check in checks) == 9
    after = state(loaded)
    assert (sorted(after["wait"]), "active" in after) == (ids, False)
    assert all(after[job_id]["stc"] == "1" for job_id in ids)


@pytest.mark.parametrize("batch_size", [1, 1000])
@pytest.mark.parametrize("marks", [set(), {"a", "b", "gone"}], ids=["fresh", "marked"])
def test_a_sweep_leaves_no_key_of_its_own_behind(client, batch_size, marks):
    put(client, active=["b", "a"], jobs={"a": {}, "b": {}}, **({"stalled": marks} if marks else {}))

    StalledChecker(client, batch_size=batch_size).check("q")

    known = {"locks", "active", "wait", "stalled", "marker", "events", "a", "b"}
    assert set(state(client)) <= known


def test_what_a_sweeper_that_dies_within_a_sweep_leaves_behind_ends_by_itself(loaded):
    ids = [str(number) for number in range(4)]
    put(loaded, active=ids, jobs={job_id: {} for job_id in ids}, stalled=set(ids))

    def die():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StalledChecker(Between(loaded, {2: die}), batch_size=1).check("q")

    left = loaded.keys("emq:q:stalled-check:*")
    assert left
    assert all(0 < loaded.pttl(name) <= 600_000 for name in left)
    checker = StalledChecker(loaded)
    assert (checker.check("q").marked, checker.check("q").recovered_ids) == (2, ("1", "0"))
    assert state(loaded)["wait"] == ids


def test_recovered_jobs_of_several_calls_wait_with_the_oldest_first(client):
    ids = [str(number) for number in range(5)]
    put(client, active=ids, jobs={job_id: {} for job_id in ids}, stalled=set(ids))

    StalledChecker(client, batch_size=2).check("q")

    assert state(client) == as_data(
        wait=ids,
        jobs=dict.fromkeys(ids, BACK),
        marker={"0": 0},
        events=[recorded for job_id in reversed(ids) for recorded in came_back(job_id)],
    )
