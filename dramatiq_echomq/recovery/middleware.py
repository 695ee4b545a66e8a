from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from logging import Logger
from typing import Any, NoReturn

from dramatiq import Actor, Broker, Worker
from dramatiq.logging import get_logger

from ..errors import SettingError
from ..protocol.clients import client_from, own_client
from ..protocol.policy_options import POLICY_OPTIONS
from ..settings import Settings
from ..signals import RecoveringMiddleware
from ..validation import require_client, require_hash_tag, require_no_others
from .beside import is_for_tests, redis_client_of, settings_of
from .recoverer import Recoverer
from .sweeper import Sweeper

#: For how many seconds a check sends a command again: the next check comes soon enough.
RESENDING = 0.1

#: How many seconds a worker that shuts down waits for a check under way.
STOP_TIMEOUT = 5.0


class StalledCheckerMiddleware(RecoveringMiddleware):
    """Middleware that brings back the jobs of dead workers.  Each worker
    process runs one thread that checks the worker's queues under
    ``emq:<queue>``; however many workers there are, a queue is checked once
    per interval.

    Example:

      >>> from dramatiq_echomq import StalledCheckerMiddleware
      >>> broker.add_middleware(StalledCheckerMiddleware(url="redis://localhost:6379/0"))

    What a setting is when it is not given here: see :class:`.Settings`.

    Parameters:
      client(redis.Redis): The client to use.  Without one and without a URL,
        it is the broker's own.
      url(str): The Redis to connect to, instead of a client.
      prefix(str): What the keys of all queues begin with.  Defaults to
        ``emq``, or to the prefix of an EchoMQBroker.
      stalled_interval(int): The ms between two checks of a queue.  A stalled
        job comes back at the second check that finds it so.  Defaults to
        30 seconds.
      max_stalled_count(int): How often a job may stall and come back before
        it is failed.  Defaults to 1.
      queues(Iterable[str]): The queues to check.  Defaults to all that the
        worker consumes.
      batch_size(int): How many ids one script call looks at, at most.  Defaults to 1,000.
      max_recovered_share(float): The share of the active jobs, above 0 and up
        to 1, that a check may recover at once.  One that would recover more
        does nothing for one round, and the next sweep goes through.  Jobs of
        workers that were seen to be killed do not count.  Defaults to None:
        any.
      report_only(bool): Only log and signal what checks would do.  Every
        worker process reports for itself.  Defaults to False.
      crash_detection(bool): Whether to recover the jobs of a worker of
        EchoMQBroker as soon as its connection to Redis has closed, as it does
        when the process is killed.  Defaults to True.
      crash_grace(int): The ms for which the connection must stay closed.
        Defaults to 3 seconds.
      lock_duration(int): The ms that locks of the workers last, to say how
        soon a job is back.  Defaults to that of an EchoMQBroker, else to
        30 seconds.

    Raises:
      SettingError: When one of these cannot be used.  It is a ValueError.
    """

    def __init__(
        self,
        *,
        client: Any = None,
        url: str | None = None,
        prefix: str | None = None,
        stalled_interval: int | None = None,
        max_stalled_count: int | None = None,
        queues: Iterable[str] | None = None,
        batch_size: int | None = None,
        max_recovered_share: float | None = None,
        report_only: bool | None = None,
        crash_detection: bool | None = None,
        crash_grace: int | None = None,
        lock_duration: int | None = None,
        **unknown: NoReturn,
    ) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        require_no_others(unknown, type(self).__init__)
        self.settings: Settings = Settings.load(
            prefix=prefix,
            stalled_interval=stalled_interval,
            max_stalled_count=max_stalled_count,
            batch_size=batch_size,
            max_recovered_share=max_recovered_share,
            report_only=report_only,
            crash_detection=crash_detection,
            crash_grace=crash_grace,
            lock_duration=lock_duration,
        )
        self.has_own_prefix: bool = prefix is not None
        self.has_own_lock_duration: bool = lock_duration is not None
        self.queues: tuple[str, ...] | None = None if queues is None else queue_names_from(queues, self.settings.prefix)
        self.client: Any = client_from(client, url)
        if self.client is not None:
            require_client(self.client)
            require_hash_tag(self.client, self.settings.prefix)
        self._sweepers: dict[int, Sweeper] = {}  # by the id of their worker, which each keeps alive

    @property
    def actor_options(self) -> set[str]:
        return set(POLICY_OPTIONS)

    def after_declare_actor(self, broker: Broker, actor: Actor[Any, Any]) -> None:
        given = [name for name in POLICY_OPTIONS if name in actor.options]
        if given and settings_of(broker) is None and not is_for_tests(broker):
            self.logger.warning(
                "Actor %r has options that %s ignores, which are for EchoMQBroker: %s.",
                actor.actor_name,
                type(broker).__name__,
                ", ".join(given),
            )

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        self._stop_sweeper(worker)
        recoverer = self.recoverer_for(broker, worker)
        if recoverer is not None:
            self.logger.info(recoverer.announcement())
            for doubt in self.settings.doubts():
                self.logger.warning("%s", doubt)
            self._sweepers[id(worker)] = sweeper_of(recoverer)
            self._sweepers[id(worker)].start()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stop_sweeper(worker)

    def recoverer_for(self, broker: Broker, worker: Worker) -> Recoverer | None:
        """Return what recovers the jobs of a worker's queues, or None where that cannot be done."""
        client = self.client or redis_client_of(broker)
        if client is None:
            self.logger.error(
                "Stalled jobs are not recovered: %s has no Redis client. "
                "Give StalledCheckerMiddleware a url or a client.",
                type(broker).__name__,
            )
            return None
        try:
            settings = self._settings_for(broker)
            own = own_client(client, type(self).__name__, resending=RESENDING)
            return Recoverer(
                broker,
                worker,
                client=own,
                settings=settings,
                queues=self.queues,
                dead_message_ttl=self._dead_message_ttl_of(broker),
            )
        except SettingError as error:
            self.logger.error("Stalled jobs are not recovered: %s.", error)
            return None

    def _settings_for(self, broker: Broker) -> Settings:
        """An EchoMQBroker knows the prefix and the locks of its own queues."""
        own = settings_of(broker)
        if own is None or self.has_own_prefix:
            return self.settings
        lock_duration = self.settings.lock_duration if self.has_own_lock_duration else own.lock_duration
        return dataclasses.replace(self.settings, prefix=own.prefix, lock_duration=lock_duration)

    def _dead_message_ttl_of(self, broker: Broker) -> int | None:
        """Return for how long failed jobs are kept, where they are an EchoMQBroker's own
        to remove: in its queues, on its server.
        """
        own = settings_of(broker)
        if own is None or self.has_own_prefix:
            return None
        return own.dead_message_ttl if self.client in (None, redis_client_of(broker)) else None

    def _stop_sweeper(self, worker: Worker) -> None:
        sweeper = self._sweepers.pop(id(worker), None)
        if sweeper is not None:
            sweeper.stop(STOP_TIMEOUT)


def sweeper_of(recoverer: Recoverer) -> Sweeper:
    """Make the thread that checks a worker's queues."""
    return Sweeper(
        interval=recoverer.settings.stalled_interval,
        queue_names=recoverer.queue_names,
        check=recoverer.check,
        prepare=recoverer.prepare,
        look=recoverer.crashes.look if recoverer.looks_for_crashes else None,
    )


def queue_names_from(queues: Iterable[str], prefix: str) -> tuple[str, ...]:
    """Return the names of queues that were given.

    Raises:
      SettingError: When these are not queue names.
    """
    names = () if isinstance(queues, str) or not isinstance(queues, Iterable) else tuple(queues)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise SettingError("queues", "keyword argument", queues, "a list of queue names")
    if any(name.startswith(f"{prefix}:") for name in names):
        raise SettingError("queues", "keyword argument", queues, f"a list of queue names without {prefix}: before them")
    return names
