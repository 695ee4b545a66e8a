from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence

from ..protocol.mutex import make_mutex
from .threads import Runner

#: How many seconds a thread waits before it makes sure that the one that leads is alive.
LOOK_AFTER_LEADER = 1.0

#: For how many seconds the one that leads lets others get on: as short as a system can sleep.
PAUSE = 0.00001


class Part:
    """What one thread has to tell Redis, as a part of a call."""

    def __init__(self) -> None:
        self.runner: Runner = Runner()
        self.is_done: bool = False
        self.is_waited_for: bool = True
        self.error: BaseException | None = None
        self._gate = threading.Lock()
        self._gate.acquire()

    def settle(self, error: BaseException | None = None) -> None:
        """Let the thread of this part go on."""
        self.error, self.is_done = error, True
        self.wake()

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has been woken before
            self._gate.release()

    def wait(self, seconds: float) -> None:
        self._gate.acquire(timeout=seconds)


class GroupCommit:
    """Sends what comes up while a call is under way together in the next one.
    The first thread that comes leads: it makes the call, and hands over to the
    first of those that came meanwhile.  A thread that is alone waits for
    nobody, and others for what is about to come.  When an interrupt ends the
    thread that leads, the next one makes its call again: parts may be sent
    twice.

    Attributes:
      pending(list[Part]): What has not been answered yet, in order.
    """

    def __init__(self) -> None:
        self._queue_mutex = make_mutex()
        self.pending: list[Part] = []
        self._leader: Part | None = None

    def submit(self, part: Part) -> None:
        """Send a part, alone or with others, and wait for its reply.

        Raises:
          Exception: What the call raised that it was in.
        """
        with self._queue_mutex:
            self.pending.append(part)
            if self._leader is None:
                self._leader = part
        try:
            while not part.is_done:
                if self._leader is part:
                    self._lead()
                else:
                    part.wait(LOOK_AFTER_LEADER)
                    self._replace_dead_leader(part)
        finally:
            self._hand_over(part)
        if part.error is not None:
            raise part.error

    def expects_more(self) -> bool:
        """Return whether others are about to have something to tell as well.  To be
        defined by what inherits from this.
        """
        return False

    def send(self, parts: Sequence[Part]) -> None:
        """Make one call of some parts, and settle those that it succeeds for.
        To be defined by what inherits from this.
        """
        raise NotImplementedError

    def _lead(self) -> None:
        self._let_others_get_on()
        parts = list(self.pending)
        failure: Exception | None = None
        try:
            self.send(parts)
        except Exception as error:
            failure = error
        for part in parts:
            if not part.is_done:
                part.settle(failure)
        with self._queue_mutex:
            self.pending = [part for part in self.pending if not part.is_done]

    def _let_others_get_on(self) -> None:
        """Pause as long as each pause brings more, which saves a call."""
        while self.expects_more():
            before = len(self.pending)
            time.sleep(PAUSE)
            if len(self.pending) == before:
                return

    def _hand_over(self, part: Part) -> None:
        """Let the next one lead, in whichever way this one ended."""
        part.is_waited_for = False
        with self._queue_mutex:
            if self._leader is part:
                self._leader = next((each for each in self.pending if not each.is_done and each.is_waited_for), None)
                if self._leader is not None:
                    self._leader.wake()

    def _replace_dead_leader(self, part: Part) -> None:
        with self._queue_mutex:
            leader = self._leader
            if not part.is_done and (leader is None or not leader.runner.is_alive()):
                self._leader = part
