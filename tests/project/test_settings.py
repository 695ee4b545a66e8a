from __future__ import annotations

import dataclasses

import pytest
import redis.asyncio

import dramatiq_echomq
from dramatiq_echomq import SettingError, Settings

from ..support.complaints import complaint

pytestmark = pytest.mark.usefixtures("nothing_set")

WHOLE_NUMBERS = ["stalled_interval", "max_stalled_count", "batch_size", "lock_duration"]


def test_every_setting_has_a_default():
    assert Settings.load() == Settings(
        prefix="emq",
        stalled_interval=30_000,
        max_stalled_count=1,
        batch_size=1_000,
        report_only=False,
        lock_duration=30_000,
    )


def test_a_keyword_goes_before_the_environment_and_that_before_django(django, monkeypatch):
    django(DRAMATIQ_ECHOMQ={"STALLED_INTERVAL": 300, "BATCH_SIZE": 3, "MAX_STALLED_COUNT": 3})
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_STALLED_INTERVAL", "200")
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_BATCH_SIZE", "2")

    settings = Settings.load(stalled_interval=100, batch_size=None)
    assert (settings.stalled_interval, settings.batch_size, settings.max_stalled_count) == (100, 2, 3)
    assert settings.lock_duration == 30_000


def test_a_zero_or_a_false_is_a_value(monkeypatch):
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_MAX_STALLED_COUNT", "2")
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_REPORT_ONLY", "1")
    settings = Settings.load(max_stalled_count=0, report_only=False)
    assert (settings.max_stalled_count, settings.report_only) == (0, False)


@pytest.mark.parametrize(
    ("written", "value"), [("1", True), ("true", True), ("ON", True), (" yes", True), ("0", False), ("False", False)]
)
def test_a_switch_is_written_in_several_ways_in_the_environment(monkeypatch, written, value):
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_REPORT_ONLY", written)
    assert Settings.load().report_only is value


@pytest.mark.parametrize(("written", "value"), [("0.5", 0.5), ("1", 1.0), ("none", None), ("", None)])
def test_a_share_is_read_from_the_environment(monkeypatch, written, value):
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_MAX_RECOVERED_SHARE", written)
    assert Settings.load().max_recovered_share == value


@pytest.mark.parametrize("written", ["half", "2", "0", "nan", "50%"])
def test_what_is_no_share_is_named_with_its_variable(monkeypatch, written):
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_MAX_RECOVERED_SHARE", written)
    with pytest.raises(SettingError, match=r"variable DRAMATIQ_ECHOMQ_MAX_RECOVERED_SHARE.*above 0 and up to 1"):
        Settings.load()


@pytest.mark.parametrize("value", [0, -1, 1.0, 0.5, "30000", True, float("nan"), [1], 2**53, 10**400])
def test_a_bad_interval_is_refused(value):
    line = complaint(stalled_interval=value)
    assert line.startswith(f"stalled_interval (keyword argument) is {value!r}, but it must be a whole number of at ")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max_stalled_count", -1, "at least 0"),
        ("max_stalled_count", "1", "at least 0"),
        ("batch_size", 0, "at least 1"),
        ("report_only", 1, "True or False"),
        ("report_only", "yes", "True or False"),
        ("prefix", "", "a text such as 'emq'"),
        ("prefix", "emq:", "without a colon"),
        ("prefix", b"emq", "a text such as 'emq'"),
    ],
)
def test_a_bad_keyword_is_named_with_its_value_and_what_is_allowed(name, value, allowed):
    line = complaint(**{name: value})
    assert line.startswith(f"{name} (keyword argument) is {value!r}, but it must be ")
    assert allowed in line


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, bad) for name in WHOLE_NUMBERS for bad in (None, -1, "1", True)), ("keep_failed", -1), ("prefix", "")],
)
def test_no_settings_can_be_made_with_a_bad_value(name, value):
    with pytest.raises(SettingError, match=f"^{name} .keyword argument. is {value!r}, but it must be "):
        Settings(**{name: value})
    with pytest.raises(SettingError):
        dataclasses.replace(Settings(keep_failed=None), **{name: value})


def test_queues_are_named_without_the_prefix():
    assert "without mine: before them" in complaint(queues=["images", "mine:mails"], prefix="mine")


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
@pytest.mark.parametrize("written", ["", "soon", "-1", "1.5", "1e3"])
def test_a_bad_environment_variable_is_named(monkeypatch, name, written):
    monkeypatch.setenv(f"DRAMATIQ_ECHOMQ_{name.upper()}", written)
    assert f"{name} (environment variable DRAMATIQ_ECHOMQ_{name.upper()}) is " in complaint()


@pytest.mark.parametrize(("name", "written"), [("REPORT_ONLY", "maybe"), ("PREFIX", ""), ("PREFIX", "emq:")])
def test_a_bad_text_in_the_environment_is_named(monkeypatch, name, written):
    monkeypatch.setenv(f"DRAMATIQ_ECHOMQ_{name}", written)
    assert f"(environment variable DRAMATIQ_ECHOMQ_{name}) is {written!r}" in complaint()


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_a_bad_django_setting_is_named(django, name):
    django(DRAMATIQ_ECHOMQ={name.upper(): "30"})
    assert complaint().startswith(f"{name} (Django setting DRAMATIQ_ECHOMQ['{name.upper()}']) is '30', but")


@pytest.mark.parametrize("written", ["", "None", "none", " NULL "])
def test_none_can_be_written_where_it_is_the_default(monkeypatch, django, written):
    django(DRAMATIQ_ECHOMQ={"KEEP_FAILED": 5})
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_KEEP_FAILED", written)
    assert Settings.load().keep_failed is None


def test_none_is_a_value_in_django_where_it_is_the_default(django):
    django(DRAMATIQ_ECHOMQ={"KEEP_FAILED": None})
    assert Settings.load().keep_failed is None
    django(DRAMATIQ_ECHOMQ={"BATCH_SIZE": None})
    assert "batch_size (Django setting DRAMATIQ_ECHOMQ['BATCH_SIZE']) is None" in complaint()


def test_a_value_of_any_length_is_cut_in_the_error():
    assert len(complaint(stalled_interval="x" * 1_000_000)) < 1_000
    assert "a value of type int that cannot be shown" in complaint(stalled_interval=10**5000)


def test_public_names_are_found_by_dir():
    assert set(dramatiq_echomq.__all__) <= set(dir(dramatiq_echomq))


def test_the_django_setting_must_be_a_dictionary(django):
    django(DRAMATIQ_ECHOMQ=[30])
    assert complaint() == "DRAMATIQ_ECHOMQ (Django setting) is [30], but it must be a dictionary"


def test_a_django_that_has_no_such_setting_changes_nothing(django):
    django()
    assert Settings.load() == Settings()


def test_a_django_that_is_not_configured_is_not_asked(django):
    django(configured=False, DRAMATIQ_ECHOMQ={"BATCH_SIZE": 2})
    assert Settings.load() == Settings()


def test_a_django_that_is_configured_when_it_is_first_asked_is_asked(django, monkeypatch):
    django(configured=False, DRAMATIQ_ECHOMQ={"BATCH_SIZE": 2})
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "site.settings")
    assert Settings.load().batch_size == 2


@pytest.mark.parametrize("queues", ["q", [], [""], ["q", 1], b"q", 5])
def test_bad_queues_are_refused(queues):
    assert "a list of queue names" in complaint(queues=queues)


@pytest.mark.parametrize("client", ["redis://localhost", redis.asyncio.Redis(), 6379, object()])
def test_what_is_no_synchronous_client_is_refused(client):
    assert "it must be a redis.Redis or redis.cluster.RedisCluster" in complaint(client=client)


def test_a_client_and_a_url_are_one_too_many(client):
    assert complaint(client=client, url="redis://localhost").startswith("client (keyword argument) is 'Redis'")
