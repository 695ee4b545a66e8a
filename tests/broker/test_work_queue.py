"""The queue from which all threads of a worker take their messages."""

from __future__ import annotations

import sys
import threading

import pytest
from dramatiq.middleware import Interrupt
from dramatiq.threading import raise_thread_exception

from ..support.brokers import working
from ..support.servers import wait_until


class Abort(Interrupt):
    """What middleware may raise in any thread, anywhere."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Threads end without a word when they are interrupted."""
    monkeypatch.setattr(threading, "excepthook", lambda ended: None)


@pytest.mark.parametrize("use", ["put", "get", "task_done", "join"])
def test_no_interrupt_closes_the_queue_that_all_threads_of_a_worker_use(broker, use):
    """One that comes while a thread waits for the queue's lock is raised as soon as it has the lock."""
    with working(broker, worker_threads=2) as worker:
        for thread in worker.workers:  # so that none of them has the lock
            thread.pause()
            assert thread.paused_event.wait(20)
        work_queue, arguments = worker.work_queue, [1] if use == "put" else []
        with work_queue.mutex:
            thread = threading.Thread(target=getattr(work_queue, use), args=arguments, daemon=True)
            thread.start()
            wait_until(lambda: is_in(thread, "put", "get", "task_done", "join"))
            raise_thread_exception(thread.ident, Abort)
        thread.join(20)
        is_free = work_queue.mutex.acquire(timeout=5)
        if is_free:
            work_queue.mutex.release()
        assert is_free
        for thread in worker.workers:
            thread.resume()


def is_in(thread: threading.Thread, *functions: str) -> bool:
    """Whether a thread waits within one of these functions, and in none that it has called but C's."""
    frame = sys._current_frames()[thread.ident]
    while frame is not None and frame.f_code.co_name == "__enter__":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name in functions
