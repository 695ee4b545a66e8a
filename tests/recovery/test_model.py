"""Random life of a queue, compared with the model of it after every step."""

from __future__ import annotations

import itertools
from collections import Counter

import hypothesis.strategies as st
import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from dramatiq_echomq import StalledChecker
from dramatiq_echomq.protocol.replies import StalledReply, failed_job_from

from ..support.model import MAX_STALLED_COUNT, Job, Model
from ..support.queue_data import is_call_of_check, put, state

PLACES = ("wait", "paused", "prioritized", "active", "completed", "failed")
OPERATIONS = ["take", "take", "renew", "lose_lock", "lose_lock", "finish", "pause_or_resume"]


class Interrupted:
    """A client that calls back after each call of a check, with its reply."""

    def __init__(self, client, after_call):
        self.client = client
        self.after_call = after_call

    def execute_command(self, *args, **options):
        reply = self.client.execute_command(*args, **options)
        if is_call_of_check(args):
            self.after_call(reply)
        return reply

    def unlink(self, *names):
        return self.client.unlink(*names)


class Queue(RuleBasedStateMachine):
    """Workers that take, renew, lose and finish jobs, and two sweepers, one of which looks at two ids per call."""

    client: redis.Redis
    seen: Counter

    @initialize(data=st.data(), started=st.integers(0, 6))
    def set_up(self, data, started) -> None:
        self.client.flushdb()
        self.model = Model()
        self.numbers = itertools.count()
        self.sweepers = [self.sweeper(self.client, batch_size) for batch_size in (2, 1000)]
        for number in range(started):
            self.add(priority=number % 2, attempts=number % 4)
            self.take(data)
            if number % 3:
                self.lose_lock(data)

    def sweeper(self, client, batch_size: int) -> StalledChecker:
        return StalledChecker(client, max_stalled_count=MAX_STALLED_COUNT, batch_size=batch_size)

    def a_locked_job(self, data) -> list[str]:
        """The id of one job that a worker holds, if there is any."""
        held = [job_id for job_id in self.model.active if self.model.jobs[job_id].locked]
        return [data.draw(st.sampled_from(held))] if held else []

    @rule(priority=st.sampled_from([0, 0, 1, 5]), attempts=st.sampled_from([0, 0, 1, 2, 3]))
    def add(self, priority, attempts) -> None:
        job_id = f"job{next(self.numbers)}"
        put(self.client, jobs={job_id: {"opts": f'{{"attempts": {attempts}}}', "priority": str(priority)}})
        self.model.jobs[job_id] = Job(priority=priority, attempts=attempts)
        self.model.make_available(job_id)
        if priority:
            self.client.zadd("emq:q:prioritized", {job_id: priority * 2**32})
        else:
            self.client.lpush("emq:q:paused" if self.model.is_paused else "emq:q:wait", job_id)

    @rule(data=st.data(), operation=st.sampled_from(OPERATIONS))
    def work(self, data, operation) -> None:
        getattr(self, operation)(data)

    # Each of the operations returns the ids that it touched.

    def take(self, _) -> list[str]:
        if self.model.is_paused:
            return []
        popped = self.client.rpop("emq:q:wait")
        popped = popped or next((member for member, _ in self.client.zpopmin("emq:q:prioritized")), b"")
        job_id = popped.decode()
        if job_id:
            self.model.take(job_id)
            self.client.lpush("emq:q:active", job_id)
            self.client.hset(f"emq:q:{job_id}", "ats", self.model.jobs[job_id].started)
            put(self.client, locks=[job_id])
        return [job_id]

    def renew(self, data) -> list[str]:
        for job_id in (held := self.a_locked_job(data)):
            put(self.client, locks=[job_id])
            self.client.srem("emq:q:stalled", job_id)
            self.model.jobs[job_id].marked = False
        return held

    def lose_lock(self, data) -> list[str]:
        for job_id in (held := self.a_locked_job(data)):
            assert self.client.delete(f"emq:q:{job_id}:lock") == 1
            self.model.jobs[job_id].locked = False
        return held

    def finish(self, data) -> list[str]:
        for job_id in (held := self.a_locked_job(data)):
            self.client.lrem("emq:q:active", -1, job_id)
            self.client.zadd("emq:q:completed", {job_id: 1})
            self.client.delete(f"emq:q:{job_id}:lock")
            self.client.srem("emq:q:stalled", job_id)
            self.model.finish(job_id)
        return held

    def pause_or_resume(self, _) -> list[str]:
        self.model.pause_or_resume()
        source, target = ("wait", "paused") if self.model.is_paused else ("paused", "wait")
        if self.model.line:
            self.client.rename(f"emq:q:{source}", f"emq:q:{target}")
        if self.model.is_paused:
            put(self.client, meta={"paused": "1"})
        else:
            self.client.hdel("emq:q:meta", "paused")
        return []

    @rule(numbers=st.lists(st.integers(0, 1), min_size=1, max_size=3))
    def check(self, numbers) -> None:
        for number in numbers:
            expected = self.model.check()

            check = self.sweepers[number].check("q")

            assert (list(check.recovered_ids), list(check.failed_ids)) == (expected["requeue"], expected["fail"])
            assert (check.marked, check.dropped) == (len(expected["mark"]), 0)
            self.seen.update({verdict: len(ids) for verdict, ids in expected.items()})

    @rule(data=st.data())
    def check_while_the_workers_go_on(self, data) -> None:
        """Whatever they do between its calls: a job that they leave alone gets its verdict, and none is harmed."""
        model = self.model
        verdicts = {job_id: model.jobs[job_id].verdict() for job_id in model.active}
        marks = {job_id for job_id in model.active if model.jobs[job_id].marked}
        recovered, touched = {}, set()

        def interrupt(reply) -> None:
            told = StalledReply(*reply)
            ids = [(job_id, "requeue") for job_id in told.recovered_ids()]
            ids += [(failed_job_from(row).job_id, "fail") for row in told.failed_jobs]
            for job_id, verdict in ids:
                assert job_id in marks
                assert not model.jobs[job_id].locked
                assert model.stall(job_id) == verdict
                assert job_id not in recovered
                recovered[job_id] = verdict
            for operation in data.draw(st.lists(st.sampled_from(OPERATIONS), max_size=3)):
                touched.update(getattr(self, operation)(data))

        self.sweeper(Interrupted(self.client, interrupt), 1).check("q")

        marked = {job_id.decode() for job_id in self.client.smembers("emq:q:stalled")}
        assert marked <= {job_id for job_id in model.active if not model.jobs[job_id].locked}
        for job_id in verdicts.keys() - touched:
            assert recovered.get(job_id, "mark" if job_id in marked else "healthy") == verdicts[job_id], job_id
            self.seen[f"{verdicts[job_id]} among others"] += 1
        for job_id, job in model.jobs.items():
            job.marked = job_id in marked

    @invariant()
    def the_queue_is_as_the_model_says(self) -> None:
        queue, model = state(self.client), self.model
        places = {name: list(queue.get(name, ())) for name in PLACES}
        found = [(job_id, name) for name, ids in places.items() for job_id in ids]

        assert sorted(found) == sorted((job_id, job.place) for job_id, job in model.jobs.items())
        assert places["paused" if model.is_paused else "wait"] == model.line
        assert places["active"] == model.active
        assert queue["locks"] == {job_id for job_id, job in model.jobs.items() if job.locked}
        assert queue.get("stalled", set()) == {job_id for job_id, job in model.jobs.items() if job.marked}
        assert not [name for name in queue if name.startswith("stalled-check:")]
        for job_id, job in model.jobs.items():
            fields = queue[job_id]
            assert (int(fields.get("stc", 0)), int(fields.get("atm", 0))) == (job.stalls, job.made), job_id


def test_a_queue_does_what_the_model_says(client):
    Queue.client, Queue.seen = client, Counter()
    StalledChecker(client).check("q")  # the server knows the script from here on: a call is one command

    verdicts = ("healthy", "mark", "requeue", "fail")
    names = [name for verdict in verdicts for name in (verdict, f"{verdict} among others")]
    options = settings(
        max_examples=60,
        stateful_step_count=25,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    for attempt in range(5):  # chance may leave a verdict out, but not again and again
        run_state_machine_as_test(Queue, settings=settings(options, derandomize=options.derandomize and attempt == 0))
        if min(Queue.seen[name] for name in names) > 0:
            return
    pytest.fail(f"not all verdicts were seen: {Queue.seen}")
