"""Messages with options that Dramatiq could not work with: the job fails, the thread lives."""

from __future__ import annotations

import json

import dramatiq
import pytest
from dramatiq.middleware import GroupCallbacks, default_middleware
from dramatiq.rate_limits.backends import StubBackend as StubRateLimits
from dramatiq.results import Results
from dramatiq.results.backends import StubBackend as StubResults

from dramatiq_echomq import EchoMQBroker, SettingError

from ..support.brokers import working
from ..support.job_data import add, message
from ..support.queue_data import put, state

HUGE = 10**400
NEXT = message(actor="next").asdict()

BAD = [
    *(("throws", value) for value in ("x", ["ValueError"], 1, {"a": 1})),
    *(("retries", value) for value in ("1", None, [], HUGE, float("inf"))),
    *(("max_retries", value) for value in ("3", [], {}, HUGE, float("nan"))),
    *((name, value) for name in ("min_backoff", "max_backoff") for value in ("3", None, HUGE)),
    ("min_backoff", float("inf")),
    *((name, value) for name in ("time_limit", "max_age") for value in ("3", [1], HUGE)),
    *((name, value) for name in ("on_failure", "on_success", "on_retry_exhausted") for value in (1, ["a"], {"a": 1})),
    *(("pipe_target", value) for value in ("next", {}, [], 1, {**NEXT, "args": 1}, {**NEXT, "more": 1})),
    ("pipe_target", {**NEXT, "options": {"delay": "soon"}}),
    ("pipe_target", {**NEXT, "options": {"pipe_target": {**NEXT, "options": {"pipe_target": 1}}}}),
    *(("result_ttl", value) for value in ("1", None, 1.5, True, HUGE)),
    *(("on_failure", value) for value in ("two\nlines", "x" * 1_000)),
    ("group_completion_uuid", ["a"]),
    *(("group_completion_callbacks", value) for value in ("a", {"a": 1}, [1], [{**NEXT, "kwargs": []}])),
    *((name, value) for name in ("max_stalled_count", "broker_priority") for value in ("1", -1, 1.5, True, HUGE)),
    ("lock_duration", 0),
    ("broker_priority", 2**21 + 1),
]

GOOD = [
    *((name, None) for name in ("throws", "max_retries", "time_limit", "max_age", "on_failure", "pipe_target")),
    *((name, value) for name in ("max_retries", "time_limit", "max_age") for value in (0, 10**6, False)),
    ("max_retries", True),
    ("max_retries", float("inf")),
    ("time_limit", float("inf")),
    ("retries", 2),
    ("min_backoff", 1.5),
    ("throws", []),
    ("on_failure", "next"),
    ("on_success", ""),
    ("pipe_target", {**NEXT, "options": {"pipe_ignore": True, "delay": 1, "pipe_target": NEXT}}),
    ("group_completion_callbacks", [NEXT]),
    ("eta", "soon"),
    ("priority", "high"),
    ("traceback", 5),
    ("a stranger's own", {"any": ["thing"]}),
]


def names(cases) -> list[str]:
    return [f"{name}={str(value)[:20]}" for name, value in cases]


@pytest.fixture
def equipped(client):
    """A broker with all middleware that looks at options, and two actors."""
    broker = EchoMQBroker(client=client, middleware=[kind() for kind in default_middleware])
    broker.add_middleware(Results(backend=StubResults(), store_results=True))
    broker.add_middleware(GroupCallbacks(StubRateLimits()))
    dramatiq.actor(lambda *_: ran.append(1), actor_name="work", broker=broker, queue_name="q")
    dramatiq.actor(lambda *_: None, actor_name="next", broker=broker, queue_name="q")
    dramatiq.actor(fail, actor_name="fail", broker=broker, queue_name="q", min_backoff=1, max_backoff=1)
    ran: list[int] = []
    broker.ran = ran
    yield broker
    broker.close()


def fail(*_) -> None:
    raise RuntimeError("it broke")


def run(client, broker: EchoMQBroker, options: list[dict], *, actor: str) -> dict:
    """Put a job for each of these options into Redis, let one thread run them, and return the queue."""
    jobs = {str(at): {"name": actor, "data": encoded(actor, given)} for at, given in enumerate(options)}
    put(client, wait=list(jobs), jobs=jobs)
    with working(broker):
        broker.join("q", timeout=30_000)
    return state(client)


def encoded(actor: str, options: dict) -> str:
    return json.dumps({**message(actor=actor).asdict(), "options": options})


@pytest.mark.parametrize("actor", ["work", "fail"])
def test_a_bad_option_fails_its_job_with_a_reason_that_names_it_and_the_thread_lives(client, equipped, caplog, actor):
    found = run(client, equipped, [{name: value} for name, value in BAD], actor=actor)

    reasons = [found[str(at)].get("failedReason", "") for at in range(len(BAD))]
    assert [name for (name, _), reason in zip(names_and_values(), reasons, strict=True) if name not in reason] == []
    assert max(map(len, reasons)) < 1_000
    assert equipped.ran == []
    assert criticals(caplog) == []


def names_and_values():
    """The bad ones, with the name that is to blame inside of a pipe target."""
    return [(("delay" if "soon" in str(value) else name), value) for name, value in BAD]


def criticals(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]


@pytest.mark.parametrize("actor", ["work", "fail"])
def test_what_dramatiq_can_work_with_is_run(client, equipped, caplog, actor):
    given = [{"max_retries": 3, name: value} for name, value in GOOD]
    if actor == "fail":  # it ends
        given = [options for options in given if options["max_retries"] in (0, 1, 3)]

    found = run(client, equipped, given, actor=actor)

    reasons = {str(found[str(at)].get("failedReason")) for at in range(len(given))}
    assert reasons <= {"None", "RuntimeError: it broke"}
    assert criticals(caplog) == []


@pytest.mark.parametrize("timestamp", ["now", None, [], HUGE])
def test_a_bad_timestamp_fails_its_job(client, equipped, timestamp):
    data = json.dumps({**message().asdict(), "message_timestamp": timestamp})
    put(client, wait=["a"], jobs={"a": {"data": data}})

    with working(equipped):
        equipped.join("q", timeout=20_000)

    assert "message_timestamp" in state(client)["a"]["failedReason"]


@pytest.mark.parametrize(("name", "value"), BAD, ids=names(BAD))
def test_a_bad_option_is_refused_when_a_message_is_sent(client, broker, name, value):
    with pytest.raises(SettingError, match=rf"^(delay|{name}) \(option of "):
        add(broker, **{name: value})

    assert state(client) == {"locks": set()}


@pytest.mark.parametrize(("name", "value"), [("max_retries", "3"), ("throws", "x"), ("min_backoff", None)])
def test_a_bad_option_is_refused_when_an_actor_is_declared(client, name, value):
    broker = EchoMQBroker(client=client)

    with pytest.raises(SettingError, match=rf"^{name} \(option of actor 'work'\)"):
        dramatiq.actor(fail, actor_name="work", broker=broker, **{name: value})
    broker.close()
