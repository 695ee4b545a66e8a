"""Settings that there are not, or not so, are named with what was probably meant."""

from __future__ import annotations

import pytest
import redis

from dramatiq_echomq import SettingError, Settings, StalledChecker, StalledCheckerMiddleware

from ..support.complaints import complaint

pytestmark = pytest.mark.usefixtures("nothing_set")


def test_a_django_setting_that_there_is_not_is_refused_with_the_one_that_was_meant(django):
    django(DRAMATIQ_ECHOMQ={"STALED_INTERVAL": 30})
    assert complaint() == (
        "'STALED_INTERVAL' (key of Django setting DRAMATIQ_ECHOMQ) is not known here; did you mean STALLED_INTERVAL?"
    )


def test_an_environment_variable_that_there_is_not_is_refused_with_the_one_that_was_meant(monkeypatch):
    monkeypatch.setenv("DRAMATIQ_ECHOMQ_STALL_INTERVAL", "30")
    assert complaint() == (
        "'DRAMATIQ_ECHOMQ_STALL_INTERVAL' (environment variable) is not known here; "
        "did you mean DRAMATIQ_ECHOMQ_STALLED_INTERVAL?"
    )


@pytest.mark.parametrize("name", ["URL", "HOST", "PORT", "DB", "CLIENT", "url"])
def test_who_looks_for_the_connection_among_the_settings_is_told_where_it_is(monkeypatch, django, name):
    monkeypatch.setenv(f"DRAMATIQ_ECHOMQ_{name}", "x")
    assert complaint() == (
        f"'DRAMATIQ_ECHOMQ_{name}' (environment variable) is not known here; how to connect is no setting: give "
        "EchoMQBroker or StalledCheckerMiddleware a url or a client (the command dramatiq-echomq reads REDIS_URL)"
    )
    monkeypatch.delenv(f"DRAMATIQ_ECHOMQ_{name}")
    django(DRAMATIQ_ECHOMQ={name: "x"})
    assert "how to connect is no setting" in complaint()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("NAMESPACE", "PREFIX"), ("stalled_interval", "STALLED_INTERVAL"), ("Batch_Size", "BATCH_SIZE")],
)
def test_the_name_of_another_broker_and_a_name_in_small_letters_are_understood(monkeypatch, django, name, meant):
    monkeypatch.setenv(f"DRAMATIQ_ECHOMQ_{name}", "x")
    assert complaint().endswith(f"is not known here; did you mean DRAMATIQ_ECHOMQ_{meant}?")
    monkeypatch.delenv(f"DRAMATIQ_ECHOMQ_{name}")
    django(DRAMATIQ_ECHOMQ={name: "x"})
    assert complaint().endswith(f"is not known here; did you mean {meant}?")


@pytest.mark.parametrize("written", ["", " "])
@pytest.mark.parametrize("name", ["STALLED_INTERVAL", "BATCH_SIZE", "REPORT_ONLY", "PREFIX"])
def test_a_variable_that_is_empty_is_to_be_unset(monkeypatch, name, written):
    monkeypatch.setenv(f"DRAMATIQ_ECHOMQ_{name}", written)
    if (name, written) == ("PREFIX", " "):
        assert Settings.load().prefix == " "
    else:
        assert complaint().endswith("; unset the variable to have the default")


@pytest.mark.parametrize("name", ["stalled_interval", "max_stalled_count", "batch_size", "lock_duration"])
def test_a_number_that_is_written_as_a_text_is_said_to_be_one(django, name):
    assert complaint(**{name: "30000"}).endswith("; this is a text, write 30000 without quotes")
    django(DRAMATIQ_ECHOMQ={name.upper(): "30000"})
    assert complaint().endswith("; this is a text, write 30000 without quotes")
    assert "quotes" not in complaint(**{name: "3e4"})


@pytest.mark.parametrize("owner", [StalledCheckerMiddleware, lambda **given: StalledChecker(redis.Redis(), **given)])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("stalled_intervall", "did you mean stalled_interval?"),
        ("max_stall_count", "did you mean max_stalled_count?"),
        ("keep_failed", "what there is: "),
    ],
)
def test_a_keyword_that_there_is_not_is_refused_with_the_one_that_was_meant(owner, name, hint):
    with pytest.raises(SettingError) as caught:
        owner(**{name: 3})
    assert str(caught.value).startswith(f"'{name}' (keyword argument) is not known here; {hint}")


def test_settings_are_looked_up_by_names_that_there_are():
    with pytest.raises(SettingError, match="did you mean lock_duration"):
        Settings.load(lock_duraton=3)
