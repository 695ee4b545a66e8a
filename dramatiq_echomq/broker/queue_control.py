from __future__ import annotations

import time
from typing import Any

from dramatiq import Broker, Message, MessageProxy
from dramatiq.errors import QueueJoinTimeout

from ..protocol.job_pages import jobs_of_message
from ..protocol.keys import id_to_bytes, id_to_text
from ..protocol.records import QueueCounts
from .channel import QueueChannel
from .encoding import message_id_of
from .jobs import JOB_ID_OPTION


class QueueControl(Broker):
    """The part of a broker that looks after whole queues and after jobs that
    have failed: what people and tests do with them, not workers.

    Attributes:
      client(redis.Redis)
    """

    client: Any

    def channel(self, queue_name: str) -> QueueChannel:
        """Return this process's calls for a queue."""
        raise NotImplementedError

    def flush(self, queue_name: str) -> None:
        """Drop all the messages of a queue, finished ones included, and its job
        schedulers.  The queue is then as if it had never been used, but that
        settings stay as they are: it is still paused if it was, and its limits hold.
        Workers that run one of its jobs go on; how it ends changes nothing.

        Parameters:
          queue_name(str): The queue to flush.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        self.channel(queue_name).queue.purge()

    def flush_all(self) -> None:
        """Drop all messages of all declared queues, as :meth:`flush` does.

        Raises:
          QueueRefused: When the keys of a queue are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        for queue_name in self.get_declared_queues():
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: int | None = None) -> None:
        """Wait until a queue has no waiting, active, delayed or prioritized
        job.  Meant for tests.

        Parameters:
          queue_name(str): The queue to wait on.
          interval(int): How often to look, in ms.
          timeout(int): How long to wait at most, in ms.

        Raises:
          QueueJoinTimeout: When the timeout elapses.
          redis.RedisError: When Redis cannot be used.
        """
        deadline = None if timeout is None else time.monotonic() + timeout / 1000
        while True:
            counts = self.get_queue_message_counts(queue_name)
            if not counts.waiting + counts.active + counts.delayed + counts.prioritized + counts.paused:
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise QueueJoinTimeout(queue_name)
            time.sleep(interval / 1000)

    def get_queue_message_counts(self, queue_name: str) -> QueueCounts:
        """Count the jobs of a queue in each state.

        Parameters:
          queue_name(str)

        Returns:
          QueueCounts: ``waiting``, ``active``, ``delayed``, ``prioritized``,
          ``paused``, ``completed`` and ``failed``.

        Raises:
          redis.RedisError: When Redis cannot be used.
        """
        return self.channel(queue_name).queue.counts()

    def pause(self, queue_name: str) -> None:
        """Keep all workers, in every language, from taking jobs of a queue.  Those
        that run go on.

        Parameters:
          queue_name(str): The queue to pause.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        self.channel(queue_name).queue.set_paused(True)

    def resume(self, queue_name: str) -> None:
        """Let workers take the jobs of a paused queue again.

        Parameters:
          queue_name(str): The queue to resume.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        self.channel(queue_name).queue.set_paused(False)

    def retry(self, queue_name: str, job_id: str | bytes | Message[Any] | MessageProxy) -> bool:
        """Make a failed job available again, with no stalls on record.

        Parameters:
          queue_name(str)
          job_id(str): The id of the job, or that of its message, as Dramatiq's
            log lines show it; or the message itself.  By the id of a message,
            a job is searched for among all that have failed, in bounded calls.

        Returns:
          bool: False when the queue has no such failed job.

        Raises:
          QueueRefused: When the queue's keys are not what they should be.
          redis.RedisError: When Redis cannot be used.
        """
        queue = self.channel(queue_name).queue
        if isinstance(job_id, Message | MessageProxy):
            own_id, message_id = job_id.options.get(JOB_ID_OPTION), job_id.message_id
        else:
            own_id, message_id = job_id, id_to_text(id_to_bytes(job_id))
        if own_id is not None and queue.retry(own_id):
            return True
        # A message that was retried has a job for each time; the newest one is what has failed for good.
        for job in jobs_of_message(self.client, queue.keys, message_id, ["failed"]):
            if message_id in (job.message_id, message_id_of(queue.data_of(job.job_id) or b"")):
                return queue.retry(job.job_id)
        return False
