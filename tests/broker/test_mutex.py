"""The lock that threads enter that are interrupted."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress

import pytest
from dramatiq.middleware import Interrupt
from dramatiq.threading import raise_thread_exception

from dramatiq_echomq import EchoMQBroker
from dramatiq_echomq.protocol.mutex import Mutex, make_mutex

from ..support.servers import wait_until


class Abort(Interrupt):
    """What middleware may raise in any thread, anywhere."""


def interrupted_while_it_waits(mutex: Mutex) -> list[str]:
    """What a thread has come to that is interrupted while another has the lock."""
    said: list[str] = []

    def run() -> None:
        with suppress(Abort):
            said.append("waits")
            with mutex:
                said.append("entered")
        said.append("left")

    thread = threading.Thread(target=run)
    with mutex:
        thread.start()
        wait_until(lambda: said and is_waiting(thread))
        raise_thread_exception(thread.ident, Abort)
    thread.join(20)
    return said


def is_waiting(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code.co_name in ("run", "__enter__")


def is_free(mutex: Mutex) -> bool:
    """Whether another thread can enter it."""
    entered: list[bool] = []
    thread = threading.Thread(target=lambda: entered.append(mutex.acquire(timeout=1)) or mutex.release())
    thread.start()
    thread.join(20)
    return entered == [True]


@pytest.mark.parametrize("make", [Mutex, make_mutex])
def test_an_interrupt_that_comes_while_it_is_entered_leaves_it_open(make):
    for _ in range(5):
        mutex = make()
        assert interrupted_while_it_waits(mutex)[-1] == "left"
        assert is_free(mutex)


def test_it_is_entered_again_by_the_thread_that_has_it_and_by_no_other():
    mutex = Mutex()
    with mutex:
        with mutex:
            assert not is_free_now(mutex)
        assert not is_free_now(mutex)
    assert is_free(mutex)


def is_free_now(mutex: Mutex) -> bool:
    entered: list[bool] = []
    thread = threading.Thread(target=lambda: entered.append(mutex.acquire(blocking=False)))
    thread.start()
    thread.join(20)
    return entered == [True]


def test_what_is_raised_within_leaves_it_open():
    mutex = Mutex()
    with pytest.raises(ValueError, match="odd"), mutex:
        raise ValueError("odd")
    assert is_free(mutex)


class Interrupted(Mutex):
    """One whose thread is interrupted before it has the lock, as the main one may be by a signal."""

    def acquire(self, *args, **kwargs):
        raise Abort


def test_who_did_not_get_it_does_not_open_it():
    with pytest.raises(Abort), Interrupted():
        pass


def test_a_condition_of_it_wakes_who_waits():
    mutex, woken = Mutex(), threading.Event()
    condition = threading.Condition(mutex)

    def run() -> None:
        with mutex:
            condition.wait(20)
        woken.set()

    thread = threading.Thread(target=run)
    with mutex:
        thread.start()
    wait_until(lambda: notify(mutex, condition) or woken.is_set())
    thread.join(20)
    assert is_free(mutex)


def notify(mutex: Mutex, condition: threading.Condition) -> None:
    with mutex:
        condition.notify_all()


def test_connections_and_jobs_are_kept_by_such_locks(client):
    """Where a usual one will not do."""
    broker = EchoMQBroker(client=client, middleware=[])
    expected = type(make_mutex())

    assert (expected is Mutex) is (sys.version_info >= (3, 14))
    assert type(broker.in_flight.mutex) is expected
    broker.close()
