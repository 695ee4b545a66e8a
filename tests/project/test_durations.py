"""Durations are in ms: one that is too short was meant in seconds, and is refused wherever it comes from."""

from __future__ import annotations

import inspect
import re
import sys
from types import ModuleType, SimpleNamespace

import dramatiq
import pytest
import redis
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker, SettingError, Settings, StalledChecker, StalledCheckerMiddleware
from dramatiq_echomq.validation import LARGEST_NUMBER

from ..support.brokers import booted, lines

#: Settings in ms, with the least that is of use.
LEAST = {"lock_duration": 100, "dead_message_ttl": 1_000}

#: Those that may be as short as anybody likes.
ANY = {"stalled_interval", "crash_grace"}

#: All that takes settings as keyword arguments.
OWNERS = {
    "settings": Settings,
    "middleware": lambda **given: StalledCheckerMiddleware(client=redis.Redis(), **given),
    "broker": lambda **given: EchoMQBroker(client=redis.Redis(), middleware=[], **given),
    "checker": lambda **given: StalledChecker(redis.Redis(), **given),
}
TAKE = {
    "settings": LEAST,
    "middleware": ["lock_duration"],
    "broker": ["lock_duration", "dead_message_ttl"],
    "checker": ["dead_message_ttl"],
}
KEYWORDS = [(owner, name) for owner, names in TAKE.items() for name in names]


def told(source: str, name: str, value: int) -> str:
    return (
        f"{name} ({source}) is {value}, but it must be a whole number of at least {LEAST[name]} ms; "
        f"did you mean {value * 1000} ({value} s)?"
    )


def seconds(name: str) -> int:
    """The most that is refused, as somebody would write it who thinks of seconds."""
    return LEAST[name] - 1


def test_these_are_all_the_settings_in_ms():
    documented = re.findall(r"(\w+)\(int\): The ms", inspect.getdoc(Settings) or "")
    assert set(documented) == {*LEAST, *ANY}


def test_these_are_all_the_keywords_in_ms():
    for owner, kind in {
        "middleware": StalledCheckerMiddleware,
        "broker": EchoMQBroker,
        "checker": StalledChecker,
    }.items():
        assert set(inspect.signature(kind).parameters) & set(LEAST) == set(TAKE[owner])


@pytest.mark.parametrize(("owner", "name"), KEYWORDS)
def test_a_keyword_in_seconds_is_refused_with_what_was_meant(owner, name):
    with pytest.raises(SettingError) as caught:
        OWNERS[owner](**{name: seconds(name)})
    assert str(caught.value) == told("keyword argument", name, seconds(name))


@pytest.mark.parametrize(("owner", "name"), KEYWORDS)
def test_the_least_is_accepted(owner, name):
    OWNERS[owner](**{name: LEAST[name]})


@pytest.mark.parametrize(("owner", "name"), KEYWORDS)
@pytest.mark.parametrize("value", [0, -5, 1.5, "30", True])
def test_nothing_is_guessed_where_no_seconds_were_meant(owner, name, value):
    with pytest.raises(SettingError, match=rf"at least {LEAST[name]} ms$"):
        OWNERS[owner](**{name: value})
    with pytest.raises(SettingError, match=rf"at most {LARGEST_NUMBER} ms$"):
        OWNERS[owner](**{name: 2**53})


@pytest.mark.parametrize("name", LEAST)
@pytest.mark.parametrize("owner", ["settings", "middleware", "broker"])
def test_seconds_in_the_environment_are_refused(monkeypatch, owner, name):
    monkeypatch.setenv(variable := f"DRAMATIQ_ECHOMQ_{name.upper()}", str(seconds(name)))
    with pytest.raises(SettingError) as caught:
        Settings.load() if owner == "settings" else OWNERS[owner]()
    assert str(caught.value) == told(f"environment variable {variable}", name, seconds(name))


@pytest.mark.parametrize("name", LEAST)
def test_seconds_in_the_settings_of_django_are_refused(monkeypatch, name):
    module = ModuleType("django.conf")
    module.settings = SimpleNamespace(configured=True, DRAMATIQ_ECHOMQ={name.upper(): seconds(name)})
    monkeypatch.setitem(sys.modules, "django.conf", module)
    with pytest.raises(SettingError) as caught:
        StalledCheckerMiddleware()
    assert str(caught.value) == told(f"Django setting DRAMATIQ_ECHOMQ['{name.upper()}']", name, seconds(name))


@pytest.mark.parametrize("name", sorted(ANY))
def test_what_may_be_short_is_refused_with_its_unit_and_else_doubted(monkeypatch, name):
    with pytest.raises(SettingError, match=r"but it must be a whole number of at least 1 ms$"):
        Settings(**{name: 0})
    monkeypatch.setenv(variable := f"DRAMATIQ_ECHOMQ_{name.upper()}", "5")
    (line,) = Settings.load().doubts()
    assert line == (
        f"{name} (environment variable {variable}) is 5 ms, which is very short. "
        "Durations are in ms: if 5 s are meant, it is 5000."
    )
    assert Settings.load(**{name: 30}).doubts()[0].startswith(f"{name} (keyword argument) is 30 ms")
    assert Settings(**{name: 99}).doubts()[0].startswith(f"{name} (where it was set is not known) is 99 ms")
    assert Settings.load(**{name: 100}).doubts() == Settings().doubts() == []


def test_a_worker_warns_of_what_was_probably_meant_in_seconds_when_it_boots(client, caplog):
    stub = StubBroker(middleware=[StalledCheckerMiddleware(client=client, stalled_interval=60, crash_grace=3)])
    assert lines(caplog, "WARNING") == []
    with booted(stub):
        pass
    assert [line.partition(",")[0] for line in lines(caplog, "WARNING") if "short" in line] == [
        "stalled_interval (keyword argument) is 60 ms",
        "crash_grace (keyword argument) is 3 ms",
    ]


def test_seconds_as_an_option_of_an_actor_are_refused_when_it_is_declared(broker):
    with pytest.raises(SettingError) as caught:
        dramatiq.actor(lambda: None, actor_name="work", broker=broker, lock_duration=30)
    assert str(caught.value) == (
        "lock_duration (option of actor 'work') is 30, but it must be None or a whole number of at least 100 ms; "
        "did you mean 30000 (30 s)?"
    )
    assert broker.get_declared_actors() == set()


@pytest.mark.parametrize("value", [0, -5, 1.5, "30", True, 2**53])
def test_nothing_is_guessed_of_an_option_where_no_seconds_were_meant(broker, value):
    most = f" and at most {LARGEST_NUMBER} ms" if value == 2**53 else ""
    for declared in (
        lambda: dramatiq.actor(lambda: None, actor_name="work", broker=broker, lock_duration=value),
        lambda: broker.enqueue(dramatiq.Message("q", "work", (), {}, {"lock_duration": value})),
    ):
        with pytest.raises(SettingError, match=rf"None or a whole number of at least 100 ms{most}$"):
            declared()


def test_the_least_is_accepted_as_an_option(client, broker):
    work = dramatiq.actor(lambda: None, actor_name="work", broker=broker, lock_duration=100)
    for message in (work.send(), work.send_with_options(lock_duration=100)):
        assert client.hget(f"emq:default:{message.options['echomq_job_id']}", "opts") == b'{"lockDuration": 100}'


@pytest.mark.parametrize("way", ["enqueue", "enqueue_many", "delayed", "pipeline"])
def test_seconds_as_an_option_of_a_message_are_refused_before_anything_is_written(client, broker, way):
    work = dramatiq.actor(lambda *_: None, actor_name="work", broker=broker)
    message = work.message_with_options(lock_duration=30)
    ways = {
        "enqueue": lambda: broker.enqueue(message),
        "enqueue_many": lambda: broker.enqueue_many([work.message(), message]),
        "delayed": lambda: work.send_with_options(lock_duration=30, delay=5_000),
        "pipeline": lambda: dramatiq.pipeline([work.message(), message], broker=broker).run(),
    }

    with pytest.raises(Exception) as caught:
        ways[way]()

    error = caught.value.__cause__ or caught.value
    assert isinstance(error, SettingError)
    assert "option of the" in str(error)
    assert str(error).endswith("must be None or a whole number of at least 100 ms; did you mean 30000 (30 s)?")
    assert client.keys() == []
