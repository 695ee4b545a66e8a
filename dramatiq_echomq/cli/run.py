from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone

import click

from ..errors import EchoMQError, QueueRefused
from ..inspection.words import check_summary
from ..protocol.clients import REDIS_ERRORS
from ..protocol.logtext import on_one_line, printable
from ..protocol.records import StalledCheck
from ..recovery.crashes import CrashWatch, crash_text, nothing_held_text
from ..recovery.report_only import StalledReporter
from ..recovery.sweeper import Sweeper
from .session import Session, any_queues, plain, with_session
from .stopping import StopSignals

#: How many seconds to wait for a check under way before the command stops.
STOP_TIMEOUT = 10.0


@click.command()
@any_queues
@with_session("stalled_interval", "max_stalled_count", "batch_size", "report_only")
def run(session: Session, queue_names: tuple[str, ...]) -> None:
    """Check queues for stalled jobs until SIGTERM or Ctrl-C.

    All queues, or those named. The checker as a process of its own, beside workers in any language.
    However many checkers there are, a queue is checked once per interval. Workers of EchoMQBroker
    that were killed are seen within seconds. A line is printed for each check that did something.
    Results, on_failure callbacks and metrics of Dramatiq need StalledCheckerMiddleware in the
    workers instead.
    """
    sweeps = Sweeps(session, queue_names)
    sweeper = Sweeper(
        interval=session.settings.stalled_interval,
        queue_names=sweeps.queue_names,
        check=sweeps.check,
        prepare=sweeps.announce,
        look=sweeps.crashes.look if sweeps.looks_for_crashes else None,
    )
    stop = StopSignals()
    sweeper.start()
    stop.wait()
    sweeper.stop(STOP_TIMEOUT)
    sweeps.tell("stopped")


class Sweeps:
    """The checks of some queues, each with a line on the screen if it did something.

    Parameters:
      session(Session)
      queue_names(Iterable[str]): Empty for all that there are, looked up before each round.
    """

    def __init__(self, session: Session, queue_names: Iterable[str]) -> None:
        self.session = session
        self.reporter = StalledReporter(session.checker)
        self.crashes = CrashWatch(
            client=session.client,
            settings=session.settings,
            queue_names=self.queue_names,
            check=self.check_now,
            crash_seen=self._tell_crash,
            nothing_held=lambda *idle: self.tell(nothing_held_text(*idle)),
            cannot_look=self.tell,
        )
        self._names = list(dict.fromkeys(queue_names))
        self._found: list[str] = []
        self._looked_at = float("-inf")
        self._troubles: dict[str, str] = {}

    @property
    def looks_for_crashes(self) -> bool:
        """Whether jobs are to come back as soon as their worker has crashed."""
        return self.session.settings.crash_detection and not self.session.settings.report_only

    def announce(self) -> None:
        settings = self.session.settings
        names = ", ".join(self._names) or "all queues"
        doing = "Reporting on" if settings.report_only else "Checking"
        self.tell(f"{doing} {names} under {settings.prefix} every {settings.stalled_interval / 1000:g} s")
        for doubt in settings.doubts():
            self.tell(doubt)

    def queue_names(self) -> list[str]:
        if self._names:
            return self._names
        if time.monotonic() - self._looked_at >= self.session.settings.stalled_interval / 1000:
            self._looked_at = time.monotonic()
            try:
                self._found = self.session.inspector.queue_names()
                self._trouble_ended("")
            except REDIS_ERRORS as error:
                self._trouble("", error)
        return self._found

    def check(self, queue_name: str) -> int | None:
        """Check one queue.  Never raises.

        Returns:
          int: The ms until the next check, or None for the usual interval.
        """
        is_report, checker = self.session.settings.report_only, self.session.checker
        check = self._try_check(queue_name, self.reporter.report if is_report else checker.sweep)
        if check is None:
            return None
        if check.skipped:
            return check.throttled_for
        self._tell_check(check)
        return None

    def check_now(self, queue_name: str) -> bool:
        """Check one queue after a crash, whatever others do.  Never raises.

        Returns:
          bool: False when the check could not be made.
        """
        check = self._try_check(queue_name, lambda name: self.session.checker.check(name, may_be_held=True))
        if check is not None:
            self._tell_check(check)
        return check is not None

    def _try_check(self, queue_name: str, make_check: Callable[[str], StalledCheck]) -> StalledCheck | None:
        """Return what a check did, or None when it could not be made."""
        try:
            self.session.inspector.is_paused(queue_name)  # a check must not create what does not exist
            check = make_check(queue_name)
        except Exception as error:  # whatever it is, it must not keep the other queues from their checks
            self._trouble(queue_name, error)
            return None
        self._trouble_ended(queue_name)
        return check

    def tell(self, text: str) -> None:
        """Print a line: to stderr, so that stdout has only what checks did."""
        print(f"{_now()} {printable(text)}", file=sys.stderr, flush=True)

    def _tell_crash(self, queue_name: str, worker: str, job_ids: tuple[str, ...]) -> None:
        if job_ids:
            self.tell(crash_text(queue_name, worker, job_ids))

    def _tell_check(self, check: StalledCheck) -> None:
        if not (check.recovered or check.failed or check.marked or check.dropped or check.hold or check.oddities):
            return
        if self.session.as_json:
            print(json.dumps({"at": _now(), **plain(check)}), flush=True)
        else:
            said = check_summary(check, bool(self.session.settings.report_only))
            print(f"{_now()} {printable(check.queue_name)}: {said}", flush=True)

    def _trouble(self, queue_name: str, error: Exception) -> None:
        text = str(error) if isinstance(error, EchoMQError) else f"{type(error).__name__}: {on_one_line(str(error))}"
        text = f"the script {text}" if isinstance(error, QueueRefused) else text
        if self._troubles.get(queue_name) != text:
            self._troubles[queue_name] = text
            self.tell(f"{queue_name or 'all queues'} cannot be checked for now: {text}")

    def _trouble_ended(self, queue_name: str) -> None:
        if self._troubles.pop(queue_name, None) is not None:
            self.tell(f"{queue_name or 'all queues'} can be checked again")


def _now() -> str:
    return datetime.now(tz=timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
