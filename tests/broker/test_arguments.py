"""What the broker's arguments may be, and that a password in them is never told."""

from __future__ import annotations

import dramatiq
import pytest
import redis

from dramatiq_echomq import EchoMQBroker, SettingError

from ..support.job_data import add
from ..support.servers import free_port


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"lock_duration": 0}, "lock_duration"),
        ({"lock_duration": "30"}, "lock_duration"),
        ({"keep_completed": -1}, "keep_completed"),
        ({"keep_failed": 1.5}, "keep_failed"),
        ({"dead_message_ttl": 0}, "dead_message_ttl"),
        ({"prefix": "emq:"}, "prefix"),
        ({"url": "http://example.com"}, "url"),
        pytest.param({"client": object()}, "client", id="no client"),
        pytest.param({"client": redis.Redis(), "url": "redis://localhost"}, "client", id="client and url"),
        pytest.param({"client": redis.Redis(), "password": "s3cret"}, "password", id="client and password"),
        ({"url": "redis://localhost", "namespace": "mine"}, "namespace"),
        ({"url": "redis://localhost", "requeue_interval": 5}, "requeue_interval"),
        pytest.param({"client": redis.Redis(), "max_stalled_count": 2}, "max_stalled_count", id="client and count"),
        ({"url": "redis://localhost", "host": "elsewhere"}, "host"),
        ({"url": "unix:///tmp/s", "port": 1}, "port"),
        ({"url": "redis://localhost/1", "db": 2}, "db"),
        ({"url": "redis://:s3cret@localhost", "password": "other"}, "password"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(parameters, name):
    with pytest.raises(SettingError, match=rf"^{name} ") as caught:
        EchoMQBroker(**parameters)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("lock_durations", "lock_duration"), ("sokcet_timeout", "socket_timeout"), ("clinet", "client"), ("x", "url")],
)
@pytest.mark.parametrize("address", [{"url": "redis://localhost"}, {"host": "localhost"}])
def test_a_parameter_that_there_is_not_is_named_with_the_one_that_was_meant(address, name, meant):
    with pytest.raises(SettingError, match=rf"^'{name}' \(keyword argument\) is not known here; .*\b{meant}\b"):
        EchoMQBroker(**address, **{name: 5})


def test_what_a_url_does_not_say_may_stand_beside_it():
    broker = EchoMQBroker(url="redis://localhost", db=3, socket_timeout=2)

    assert broker.client.connection_pool.connection_kwargs["db"] == 3


@pytest.mark.parametrize("option", ["max_stalled_count", "lock_duration", "broker_priority"])
@pytest.mark.parametrize("value", [-1, "1", 1.5, True, 2**53])
def test_an_option_of_an_actor_that_cannot_be_used_is_refused_with_its_name(broker, option, value):
    with pytest.raises(SettingError, match=rf"{option} \(option of actor 'work'\)"):

        @dramatiq.actor(broker=broker, **{option: value})
        def work():
            pass

    assert broker.get_declared_actors() == set()


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cret@localhost:bad/0",
        "redis://:s3cret/word@localhost/0",
        "redis://user:s3cret@localhost/0?socket_timeout=soon",
        "amqp://user:s3cret@localhost",
    ],
)
def test_a_password_is_never_told(url):
    with pytest.raises(SettingError) as caught:
        EchoMQBroker(url=url)

    error: BaseException | None = caught.value
    assert "s3cret" not in str(error)
    assert error.__suppress_context__


def test_an_error_of_a_connection_does_not_show_the_password():
    broker = EchoMQBroker(url=f"redis://user:s3cret@127.0.0.1:{free_port()}/0", middleware=[])

    with pytest.raises(redis.ConnectionError) as caught:
        add(broker)

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(broker)
