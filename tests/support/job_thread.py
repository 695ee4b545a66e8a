"""A thread that runs a job as one of a worker's threads does."""

from __future__ import annotations

import threading
import time

from dramatiq_echomq import EchoMQBroker, LockLost


class InAThread:
    """A thread that runs a job until it is told to end or is interrupted."""

    def __init__(self, broker: EchoMQBroker, message) -> None:
        self.broker, self.message = broker, message
        self.started, self.may_end = threading.Event(), threading.Event()
        self.interrupts: list[BaseException] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.started.wait(20)

    def run(self) -> None:
        self.broker.emit_before("process_message", self.message)
        try:
            self.started.set()
            while not self.may_end.is_set():
                time.sleep(0.001)
        except LockLost as interrupt:
            self.interrupts.append(interrupt)
        try:
            while not self.may_end.is_set():
                time.sleep(0.001)
        except LockLost as interrupt:
            self.interrupts.append(interrupt)

    def end(self) -> None:
        self.may_end.set()
        self.thread.join(20)
