from __future__ import annotations

import contextlib
import signal
import threading

#: After how many seconds a signal is seen that came in the very moment in which the wait began.
LOOK_AGAIN_AFTER = 0.5


class StopSignals:
    """SIGTERM and Ctrl-C, for a command that runs until it is told to stop.

    A threading.Event will not do: a handler that sets it runs on the thread
    that waits for it, perhaps while that has the event's lock, and would wait
    for this lock for ever.
    """

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._open)

    def wait(self) -> None:
        """Wait, on the main thread, for one of them; not at all if one has come."""
        while not self._gate.acquire(timeout=LOOK_AGAIN_AFTER):
            pass

    def _open(self, *_: object) -> None:
        with contextlib.suppress(RuntimeError):  # one has come before
            self._gate.release()
