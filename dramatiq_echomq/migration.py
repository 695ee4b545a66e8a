"""Moving the messages of a RedisBroker to an EchoMQBroker.

A RedisBroker keeps a queue as a list of ids, and the messages in a hash beside
it: ``dramatiq:q`` and ``dramatiq:q.msgs``.  Delayed messages are in the queue
``q.DQ``, dead ones in the sorted set ``q.XQ``.  What a worker has fetched is in
``dramatiq:__acks__.<worker>.q`` until it acks it.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker
from dramatiq.common import dq_name, q_name, xq_name
from dramatiq.logging import get_logger

from .broker.broker import EchoMQBroker
from .broker.moved_jobs import MovedJobs, by_old_id, decoded, timestamp_of
from .errors import SettingError
from .protocol.logtext import ids_text

#: The worker in whose name messages are fetched from the RedisBroker: what an
#: interrupted move has fetched is found by the next one.
MOVER = "echomq-migration"

#: The worker that counts as dead and holds what cannot be decoded.
KEEPER = f"{MOVER}-unreadable"

#: How many messages are moved at a time.
BATCH_SIZE = 100


@dataclasses.dataclass(frozen=True)
class QueueMove:
    """How far the move of a queue is.

    Parameters:
      queue_name(str)
      total(int): How many messages the queue had at first.
      waiting(int): How many were moved that waited, or that a dead worker held.
      delayed(int): How many were moved that wait for a time to come.
      dead(int): How many dead letters were moved to ``failed``.
      left(int): Once it is done, how many were left: the next two, and those
        that were sent meanwhile.
      held(int): How many of these a worker of the old broker has fetched that
        counts as alive.
      undecodable(int): How many of these cannot be decoded here.
    """

    queue_name: str
    total: int
    waiting: int = 0
    delayed: int = 0
    dead: int = 0
    left: int = 0
    held: int = 0
    undecodable: int = 0

    @property
    def moved(self) -> int:
        return self.waiting + self.delayed + self.dead


def move_from_redis_broker(
    old: RedisBroker,
    new: EchoMQBroker,
    queues: Iterable[str] | None = None,
    *,
    progress: Callable[[QueueMove], object] | None = None,
) -> list[QueueMove]:
    """Move all messages of a RedisBroker to an EchoMQBroker, each queue in its
    order.  Delayed messages keep their time, dead letters go to ``failed``.

    Stop the old workers before, or at least let no producer send to the old
    broker any more: old workers that still run take part of the messages.
    What they have fetched is left to them; what a dead worker had fetched
    (one that was not heard of for ``heartbeat_timeout``) is moved.

    When a move is interrupted, start it again: nothing is lost or doubled.
    Run one at a time.  It holds a hundred messages in memory.

    Parameters:
      old(RedisBroker)
      new(EchoMQBroker): Messages get the options of the actors that it knows.
      queues(Iterable[str]): The queues to move.  Defaults to all that are found.
      progress(Callable): Called with a :class:`QueueMove` as a queue is moved.

    Returns:
      list[QueueMove]: What was moved, by queue.
    """
    if isinstance(queues, str):
        raise SettingError("queues", "argument", queues, "a list of queue names")
    moves = []
    for queue_name in dict.fromkeys(map(q_name, queues_of(old) if queues is None else queues)):
        move = QueueMove(queue_name, total=0)
        for move in iter_move(old, new, queue_name):
            if progress is not None:
                progress(move)
        moves.append(move)
    return moves


def iter_move(old: RedisBroker, new: EchoMQBroker, queue_name: str) -> Iterator[QueueMove]:
    """Move one queue, and yield how far it is.  See :func:`move_from_redis_broker`."""
    return _Mover(old, new, queue_name).run()


def queues_of(old: RedisBroker) -> list[str]:
    """Find the queues of a RedisBroker that hold messages, in whole or in part."""
    start, end = f"{old.namespace}:", ".msgs"
    pattern = "".join(f"\\{char}" if char in "*?[]\\^" else char for char in start) + "*" + end
    names = (_text(key).removeprefix(start).removesuffix(end) for key in old.client.scan_iter(pattern, count=1_000))
    return sorted({q_name(name) for name in names})


class _Mover:
    """Moves one queue: fetches messages as an old worker would, adds them as jobs, and acks them."""

    def __init__(self, old: RedisBroker, new: EchoMQBroker, queue_name: str) -> None:
        self.logger = get_logger(__name__, type(self))
        self.client: Any = old.client
        self.worker = RedisBroker(client=old.client, namespace=old.namespace, middleware=[], maintenance_chance=0)
        self.worker.broker_id = MOVER
        self.heartbeat_timeout = old.heartbeat_timeout
        self.heartbeats = f"{old.namespace}:__heartbeats__"
        self.queue_name = queue_name
        self.jobs = MovedJobs(new, queue_name)
        self.undecodable: set[tuple[str, str]] = set()

    def run(self) -> Iterator[QueueMove]:
        move = QueueMove(self.queue_name, total=self._size())
        yield move
        for state, number in self._batches():
            move = dataclasses.replace(move, **{state: getattr(move, state) + number})
            yield move
        self.jobs.forget_all()
        self.client.zrem(self.heartbeats, MOVER)
        yield dataclasses.replace(move, left=self._size(), held=self._held(), undecodable=len(self.undecodable))

    def _batches(self) -> Iterator[tuple[str, int]]:
        for name, state in (self.queue_name, "waiting"), (dq_name(self.queue_name), "delayed"):
            self._take_over_from_dead_workers(name)
            for number in self._move_what_was_fetched(name):
                yield state, number
            while batch := self.worker.do_fetch(name, BATCH_SIZE):
                yield state, self._move(name, by_old_id(map(decoded, batch)))
            for number in self._move_what_was_fetched(name):  # what could not be decoded, or has no id
                yield state, number
        for number in self._move_dead_letters(xq_name(self.queue_name)):
            yield "dead", number

    def _take_over_from_dead_workers(self, name: str) -> None:
        alive_since = time.time() * 1000 - self.heartbeat_timeout
        for worker, heard_of_at in self.client.zscan_iter(self.heartbeats):
            fetched = self._fetched(_text(worker), name)
            if _text(worker) != MOVER and heard_of_at <= alive_since:
                for message_id in self.client.sscan_iter(fetched):
                    self.client.smove(fetched, self._fetched(MOVER, name), message_id)

    def _move_what_was_fetched(self, name: str) -> Iterator[int]:
        """Move what this or an earlier move has fetched, in the order of age."""
        ids = (_text(message_id) for message_id in self.client.sscan_iter(self._fetched(MOVER, name)))
        while batch := list(itertools.islice(ids, BATCH_SIZE)):
            messages = {}
            for message_id, data in zip(batch, self.client.hmget(self._messages(name), batch), strict=True):
                message = decoded(data)
                if message:
                    messages[message_id] = message
                elif data is None:
                    self.client.srem(self._fetched(MOVER, name), message_id)
                else:
                    self._give_back(name, message_id)
            yield self._move(name, dict(sorted(messages.items(), key=lambda item: timestamp_of(item[1]))))

    def _move(self, name: str, messages: Mapping[str, Message[Any]]) -> int:
        for message_id, message in messages.items():
            self.jobs.add(message_id, message)
        if messages:
            with self.client.pipeline() as pipeline:
                pipeline.srem(self._fetched(MOVER, name), *messages).hdel(self._messages(name), *messages).execute()
            self.jobs.forget(messages)
        return len(messages)

    def _move_dead_letters(self, name: str) -> Iterator[int]:
        letters, unreadable = self._key(name), 0
        while found := self.client.zrange(letters, unreadable, unreadable + BATCH_SIZE - 1, withscores=True):
            died_at = {_text(message_id): int(score) for message_id, score in found}
            messages = dict(zip(died_at, self.client.hmget(self._messages(name), list(died_at)), strict=True))
            for message_id, data in list(messages.items()):
                message = decoded(data)
                if message:
                    self._add_dead_letter(message_id, message, died_at[message_id])
                elif data is not None:
                    unreadable += 1
                    self._warn_of_unreadable(name, message_id)
                    del messages[message_id]
            if messages:
                with self.client.pipeline() as pipeline:
                    pipeline.zrem(letters, *messages).hdel(self._messages(name), *messages).execute()
                self.jobs.forget(messages)
            yield sum(data is not None for data in messages.values())

    def _add_dead_letter(self, message_id: str, message: Message[Any], died_at: int) -> None:
        trace = str(message.options.get("traceback") or "")
        reason = (trace.strip().splitlines() or ["a dead letter of RedisBroker"])[-1]
        self.jobs.add_failed(message_id, message, at=died_at, reason=reason, trace=trace)

    def _give_back(self, name: str, message_id: str) -> None:
        """Leave a message as if a worker had died with it: an old worker, or another move, gets it."""
        self.client.zadd(self.heartbeats, {KEEPER: 0})
        self.client.smove(self._fetched(MOVER, name), self._fetched(KEEPER, name), message_id)
        self._warn_of_unreadable(name, message_id)

    def _warn_of_unreadable(self, name: str, message_id: str) -> None:
        self.undecodable.add((name, message_id))
        self.logger.warning(
            "Message %s of queue %r is left where it is: this process's encoder cannot decode it.",
            ids_text([message_id]),
            name,
        )

    def _size(self) -> int:
        names = self.queue_name, dq_name(self.queue_name), xq_name(self.queue_name)
        return sum(int(self.client.hlen(self._messages(name))) for name in names)

    def _held(self) -> int:
        """Count what old workers have fetched: those that are alive, or that died too lately to be known as dead."""
        workers = {_text(worker) for worker, _ in self.client.zscan_iter(self.heartbeats)} - {MOVER, KEEPER}
        names = self.queue_name, dq_name(self.queue_name)
        return sum(int(self.client.scard(self._fetched(worker, name))) for worker in workers for name in names)

    def _key(self, name: str) -> str:
        return f"{self.worker.namespace}:{name}"

    def _messages(self, name: str) -> str:
        return f"{self._key(name)}.msgs"

    def _fetched(self, worker: str, name: str) -> str:
        return f"{self._key('__acks__')}.{worker}.{name}"


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
