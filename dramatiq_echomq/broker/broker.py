from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dramatiq import Actor, Consumer, Message, Middleware
from dramatiq.common import q_name

from ..protocol.clients import client_from, client_of_parameters
from ..protocol.keys import QueueKeys
from ..protocol.parameters import unknown_ones_named
from ..protocol.policy_options import POLICY_OPTIONS
from ..settings import Settings
from ..signals import send_signal
from ..validation import require_client, require_hash_tag
from .channel import QueueChannel
from .connections import Connections
from .consumer import JobConsumer
from .enqueueing import enqueue_many, new_job, with_job_id
from .forks import call_in_forked_children
from .in_flight_jobs import InFlightJobs
from .lifecycle import LockingBroker
from .lock_renewer import LockManager
from .message_options import require_options
from .options import policies_of
from .presence import PRESENCE_TIMEOUT, Presence
from .queue import JobQueue
from .queue_control import QueueControl
from .rules import rules_of
from .stalled_failures import StalledFailures
from .worker_id import WorkerId, worker_name


class EchoMQBroker(LockingBroker, QueueControl):
    """A broker that keeps messages as EchoMQ jobs in Redis.  Each job that
    runs has a lock that its process renews; a job whose process dies comes
    back with :class:`.StalledCheckerMiddleware`.  Programs on BullMQ can
    share the queues under the same prefix.

    Examples:

      >>> EchoMQBroker(url="redis://127.0.0.1:6379/0")

      >>> EchoMQBroker(host="127.0.0.1", port=6379, db=0)

    What a setting is when it is not given here: see :class:`.Settings`.

    Parameters:
      url(str): The Redis to connect to.
      client(redis.Redis): A client to use instead.
      middleware(list[Middleware]): All middleware, instead of Dramatiq's default.
      prefix(str): What the keys of all queues begin with.  Defaults to ``emq``.
      lock_duration(int): How many ms the lock of a job lasts that is not
        renewed.  Defaults to 30 seconds.
      keep_completed(int): How many completed jobs to keep in each queue.
        Defaults to 1,000.
      keep_failed(int): How many failed jobs to keep in each queue.  Defaults
        to all.
      dead_message_ttl(int): How many ms failed jobs are kept.  Defaults to 7 days.
      max_event_bytes(int): The longest result or reason that an event carries;
        a longer one stays in the job alone.  Defaults to 10,000.
      metrics_max_data_points(int): For how many minutes BullMQ's own metrics
        are kept, of which dashboards draw charts.  Defaults to 0, for none.
      crash_detection(bool): Whether others are to see at once when a worker
        process is killed.  Defaults to True.
      **redis_parameters: Passed on to :class:`redis.Redis`.

    Raises:
      SettingError: When one of these cannot be used.  It is a ValueError.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        client: Any = None,
        middleware: list[Middleware] | None = None,
        prefix: str | None = None,
        lock_duration: int | None = None,
        keep_completed: int | None = None,
        keep_failed: int | None = None,
        dead_message_ttl: int | None = None,
        max_event_bytes: int | None = None,
        metrics_max_data_points: int | None = None,
        crash_detection: bool | None = None,
        **redis_parameters: Any,
    ) -> None:
        super().__init__(middleware=middleware)
        self.settings: Settings = Settings.load(
            prefix=prefix,
            lock_duration=lock_duration,
            keep_completed=keep_completed,
            keep_failed=keep_failed,
            dead_message_ttl=dead_message_ttl,
            max_event_bytes=max_event_bytes,
            metrics_max_data_points=metrics_max_data_points,
            crash_detection=crash_detection,
        )
        with unknown_ones_named(redis_parameters):
            self.client: Any = client_from(client, url, **redis_parameters) or client_of_parameters()
        require_client(self.client)
        require_hash_tag(self.client, self.settings.prefix)
        self.namespace: str = self.settings.prefix
        self.queues: set[str] = set()
        self.actor_options.update(POLICY_OPTIONS)
        self.connections: Connections = Connections(self.client, type(self).__name__)
        self.presence: Presence | None = self._make_presence() if self.settings.crash_detection else None
        self.hold_nothing()
        call_in_forked_children(EchoMQBroker.hold_nothing, self)
        self._policies: tuple[list[Any], str] = ([], "{}")  # of these actors
        self.add_middleware(StalledFailures(self.connections.commands, self.settings.prefix))

    def hold_nothing(self) -> None:
        """Begin as a process that holds no job.  A forked child does: jobs, locks
        to renew, calls under way and whatever threads have locked are its parent's.
        """
        self.worker_id: WorkerId = WorkerId()
        self.in_flight: InFlightJobs = InFlightJobs(self.settings.lock_duration)
        self.locks: LockManager = LockManager(
            self.connections.renewing,
            self.in_flight,
            keys_of=self._keys_of,
            lock_duration=self.settings.lock_duration,
            report=lambda smallest_ttl: send_signal(self, "after_locks_renewed", smallest_ttl=smallest_ttl),
            tell_lost=lambda job: send_signal(self, "after_lock_lost", job.queue_name, job.job_id),
        )
        self._channels: dict[str, QueueChannel] = {}

    def declare_actor(self, actor: Actor[Any, Any]) -> None:
        """Declare a new actor, in the place of one with the same name.

        Parameters:
          actor(Actor): The actor being declared.

        Raises:
          SettingError: When one of its options cannot be used.
        """
        require_options(actor.options, f"option of actor {actor.actor_name!r}")
        super().declare_actor(actor)

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue.  Has no effect if it has already been declared, and
        does not connect to Redis.

        Parameters:
          queue_name(str): The name of the new queue.
        """
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def get_declared_queues(self) -> set[str]:
        """Return a copy of the names of all declared queues."""
        return self.queues.copy()

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Enqueue a message.

        Parameters:
          message(Message): The message to enqueue.
          delay(int): The minimum number of ms to delay the message by.

        Raises:
          SettingError: When an option of the message cannot be used.
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.

        Returns:
          Message: A copy that knows the id of its job.
        """
        message, when = with_job_id(message, delay)
        self.emit_before("enqueue", message, delay)
        try:
            self.channel(message.queue_name).queue.add([new_job(self, message, when)])
        except Exception as error:
            self.processing.note_failed_enqueue(error)
            raise
        self.processing.note_enqueue(message)
        self.emit_after("enqueue", message, delay)
        return message

    def enqueue_many(self, messages: Iterable[Message[Any] | tuple[Message[Any], int | None]]) -> list[Message[Any]]:
        """Enqueue any number of messages of any queues, in few calls: what
        :meth:`enqueue` does for each, many times faster.  Each call adds all
        of its messages or none, and those of a queue keep their order.

        Examples:

          >>> broker.enqueue_many(resize.message(path) for path in paths)

          >>> broker.enqueue_many([(remind.message(1), 60_000), (remind.message(2), 120_000)])

        Parameters:
          messages(Iterable): Messages, or pairs of a message and the minimum
            number of ms to delay it by.

        Raises:
          MessagesNotAdded: When some could not be enqueued.  It says which
            were, and its ``__cause__`` says why.

        Returns:
          list[Message]: Copies that know the ids of their jobs, in the order
            of the messages.
        """
        return enqueue_many(self, messages)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """Create a new consumer for a queue.

        Parameters:
          queue_name(str): The queue to consume.
          prefetch(int): How many messages to hold at most.
          timeout(int): The idle timeout in ms.

        Returns:
          Consumer: A consumer that fetches jobs from Redis.
        """
        if self.presence is not None:
            self.presence.add_queue(q_name(queue_name))
        return JobConsumer(self, queue_name, prefetch, timeout)

    def close(self) -> None:
        """Close the connections that the broker opened besides its client's."""
        self.connections.close()

    @property
    def policies(self) -> str:
        """What the actors say about jobs that programs in other languages add, a JSON object."""
        actors = [*self.actors.values()]  # others may be declared at any moment
        if actors != self._policies[0]:
            self._policies = actors, json.dumps(policies_of(actors))
        return self._policies[1]

    def channel(self, queue_name: str) -> QueueChannel:
        """Return this process's calls for a queue, by its name or that of its delay queue."""
        name = q_name(queue_name)
        if name not in self._channels:
            rules = rules_of(self.settings, worker_name())
            queue = JobQueue(self._keys_of(name), self.connections.commands, self.connections.fetching, rules)
            self._channels.setdefault(name, QueueChannel(self, queue))
        return self._channels[name]

    def _make_presence(self) -> Presence:
        client = self.connections.watching(PRESENCE_TIMEOUT)
        return Presence(client, keys_of=self._keys_of, worker_id=lambda: str(self.worker_id))

    def _keys_of(self, queue_name: str) -> QueueKeys:
        return QueueKeys(queue_name, self.settings.prefix)
