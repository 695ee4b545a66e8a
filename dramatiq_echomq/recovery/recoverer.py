from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import redis
from dramatiq import Broker, Worker
from dramatiq.common import q_name

from ..errors import QueueRefused, ServerTooOld
from ..protocol.clients import REDIS_ERRORS
from ..protocol.keys import QueueKeys
from ..protocol.logtext import MOST_IDS
from ..protocol.payload import message_ids_of, read_payload
from ..protocol.records import StalledCheck
from ..protocol.server_version import require_version
from ..settings import Settings
from ..signals import send_signal
from .announcement import announcement
from .beside import settings_of
from .checker import StalledChecker
from .crashes import CrashWatch
from .notices import Notices
from .report_log import ALL_QUEUES, ReportLog, queue_shown
from .report_only import StalledReporter

#: What servers say when they take no writes at all, or no scripts. Before Redis 7, it stands within what a script says.
TAKES_NO_WRITES = re.compile(r"\b(?:READONLY|NOREPLICAS|MISCONF|MASTERDOWN|BUSY) ")


class Recoverer:
    """Checks the queues of one worker and tells the broker's middleware and
    the log what the checks did.

    Parameters:
      broker(Broker)
      worker(Worker)
      client(redis.Redis)
      settings(Settings)
      queues(Iterable[str]): The queues to check, or None for the worker's.
      dead_message_ttl(int): How many ms failed jobs are kept; None for ever.
    """

    def __init__(
        self,
        broker: Broker,
        worker: Worker,
        *,
        client: Any,
        settings: Settings,
        queues: Iterable[str] | None,
        dead_message_ttl: int | None = None,
    ) -> None:
        self.broker = broker
        self.worker = worker
        self.settings = settings
        self.queues = queues
        self.checker: StalledChecker = StalledChecker(
            client,
            prefix=settings.prefix,
            stalled_interval=settings.stalled_interval,
            max_stalled_count=settings.max_stalled_count,
            max_recovered_share=settings.max_recovered_share,
            batch_size=settings.batch_size,
            dead_message_ttl=dead_message_ttl,
        )
        self.reporter: StalledReporter = StalledReporter(self.checker)
        self.log: ReportLog = ReportLog(stalled_interval=settings.stalled_interval, report_only=settings.report_only)
        self.crashes: CrashWatch = CrashWatch(
            client=client,
            settings=settings,
            queue_names=self.queue_names,
            check=self.check_now,
            crash_seen=self._tell_crash,
            nothing_held=self.log.nothing_held,
            cannot_look=self.log.cannot_look,
        )
        self.notices: Notices = Notices(client, settings.prefix)
        self._has_looked_around = False

    @property
    def looks_for_crashes(self) -> bool:
        """Whether jobs are to come back as soon as their worker has crashed."""
        return self.settings.crash_detection and not self.settings.report_only

    def queue_names(self) -> list[str]:
        """Return the queues to check now: a worker's queues may be declared late."""
        names = self.worker.consumers if self.queues is None else self.queues
        return list(dict.fromkeys(q_name(name) for name in tuple(names)))

    def announcement(self) -> str:
        """Say what is checked, how often, and how soon a job is back."""
        names, looks = self.queue_names(), self.looks_for_crashes
        return announcement(self.broker, self.settings, names, looks_for_crashes=looks)

    def prepare(self) -> None:
        """Tell at once what would otherwise be seen at the first check, or later.
        Never raises.
        """
        try:
            require_version(self.notices.client)
        except (*REDIS_ERRORS, ServerTooOld) as error:
            self.log.trouble_began(ALL_QUEUES, error)
            return
        if self.notices.warn_of_eviction():
            self.notices.warn_of_idle_queues(self.queue_names())

    def check(self, queue_name: str) -> int | None:
        """Check one queue unless another sweeper just did, and tell the result.
        Never raises.

        Returns:
          int: The ms until the next check, or None for the usual interval.
        """
        report_only = self.settings.report_only
        check = self._try_check(queue_name, self.reporter.report if report_only else self.checker.sweep)
        if check is None:
            return None
        if not check.skipped:
            self.log.checked(check, self._message_ids(check))
        if report_only:
            self._tell_report(check)
            return None
        send_signal(self.broker, "after_queue_swept", queue_name)
        if check.skipped:
            return check.throttled_for
        self._tell(check)
        return None

    def check_now(self, queue_name: str) -> bool:
        """Check one queue whatever other sweepers do, and tell the result.
        When it is held, the next sweep recovers the jobs.  Never raises.

        Returns:
          bool: False when the check could not be made.
        """
        check = self._try_check(queue_name, lambda name: self.checker.check(name, may_be_held=True))
        if check is None:
            return False
        self.log.checked(check, self._message_ids(check))
        send_signal(self.broker, "after_queue_swept", queue_name)
        self._tell(check)
        return True

    def _try_check(self, queue_name: str, make_check: Callable[[str], StalledCheck]) -> StalledCheck | None:
        """Return what a check did, or None when it could not be made."""
        started = time.monotonic()
        check: StalledCheck | None = None
        error: Exception | None = None
        try:
            check = make_check(queue_name)
        except Exception as raised:
            error = raised
            self._log_trouble(queue_name, raised)
        if check is None or not check.skipped:
            seconds = time.monotonic() - started
            send_signal(self.broker, "after_stalled_sweep", queue_name, seconds=seconds, check=check, error=error)
        if check is not None:
            self._note_success(queue_name)
        return check

    def _log_trouble(self, queue_name: str, error: Exception) -> None:
        if is_of_server(error):
            self.log.trouble_began(ALL_QUEUES, error)
        elif isinstance(error, (QueueRefused, redis.ResponseError)):
            self.log.trouble_ended(ALL_QUEUES)
            self.log.trouble_began(queue_shown(queue_name), error)
        elif isinstance(error, (*REDIS_ERRORS, ServerTooOld)):
            self.log.trouble_began(ALL_QUEUES, error)
        else:
            self.log.trouble_began(queue_shown(queue_name), error, exc_info=True)

    def _note_success(self, queue_name: str) -> None:
        if self.log.trouble_ended(ALL_QUEUES):
            self.notices.warn_of_eviction()
        self.log.trouble_ended(queue_shown(queue_name))
        self.notices.warn_of_idle_queues([queue_name])
        if not self._has_looked_around:
            self._has_looked_around = True
            self.notices.warn_of_unknown_queues(self.queue_names(), may_be_new=self._is_of_broker())

    def _is_of_broker(self) -> bool:
        """Return whether the broker itself makes the queues that are checked."""
        own = settings_of(self.broker)
        return self.queues is None and own is not None and own.prefix == self.settings.prefix

    def _message_ids(self, check: StalledCheck) -> dict[str, str]:
        """Return the ids of the messages of the jobs that a log line shows."""
        removed = {job.job_id: read_payload(job.data, job.job_id).message_id for job in check.failed_jobs if job.data}
        named = [*check.recovered_ids[:MOST_IDS], *check.failed_ids[:MOST_IDS]]
        keys = QueueKeys(check.queue_name, self.settings.prefix)
        return (
            message_ids_of(self.checker.client, keys, (job_id for job_id in named if job_id not in removed)) | removed
        )

    def _tell_crash(self, queue_name: str, worker: str, job_ids: tuple[str, ...]) -> None:
        if job_ids:
            self.log.crash_seen(queue_name, worker, job_ids)
        send_signal(self.broker, "after_crash_seen", queue_name, worker, job_ids)

    def _tell(self, check: StalledCheck) -> None:
        name = check.queue_name
        if check.hold:
            if check.hold.is_new:
                would = {"would_recover": check.hold.would_recover, "active": check.hold.active}
                send_signal(self.broker, "after_stalled_hold", name, **would)
            return
        send_signal(self.broker, "after_stalled_check", name, recovered=check.recovered, failed=check.failed)
        if check.recovered_ids:
            send_signal(self.broker, "after_stalled_recovered", name, check.recovered_ids)
        if check.failed_ids:
            send_signal(self.broker, "after_stalled_failed", name, check.failed_ids)

    def _tell_report(self, check: StalledCheck) -> None:
        would = {"would_recover": check.recovered_ids, "would_fail": check.failed_ids}
        send_signal(self.broker, "after_stalled_report", check.queue_name, **would)


def is_of_server(error: Exception) -> bool:
    """Return whether a server says of itself, and not of one queue, why there is no check."""
    if isinstance(error, (redis.exceptions.ReadOnlyError, redis.exceptions.ClusterError)):
        return True
    return isinstance(error, redis.ResponseError) and TAKES_NO_WRITES.search(str(error)) is not None
