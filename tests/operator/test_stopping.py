"""How a command that runs until it is told to stop is told to."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from dramatiq_echomq.cli.stopping import StopSignals


@pytest.fixture(autouse=True)
def handlers_of_before():
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("times", [1, 3])
def test_a_signal_that_comes_before_the_wait_ends_it_at_once(number, times):
    stop = StopSignals()
    for _ in range(times):
        os.kill(os.getpid(), number)

    stop.wait()


def tell_main_thread(number: int, seconds: float) -> None:
    time.sleep(seconds)
    signal.pthread_kill(threading.main_thread().ident, number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_moment_at_which_a_signal_comes_keeps_the_wait_from_ending(number):
    """With a threading.Event, one in some ten thousand did."""
    for wait in range(400):
        stop = StopSignals()
        telling = threading.Thread(target=tell_main_thread, args=[number, wait / 1e6])
        telling.start()
        stop.wait()
        telling.join()
