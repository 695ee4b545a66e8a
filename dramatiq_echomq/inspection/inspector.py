from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import JobNotFound, QueueNotFound, QueueRefused, SettingError
from ..protocol.job_info import STATES, JobInfo
from ..protocol.job_pages import ids_in, jobs_of_message, read_page, search_jobs
from ..protocol.keys import QueueKeys, id_to_text
from ..protocol.records import STALLED
from ..settings import Settings
from ..validation import require_client, require_hash_tag, require_prefix, require_whole_number
from .actions import act, batch_size_for, promoting, removing, retrying, set_paused
from .details import read_details
from .history import QueueHistory, read_history
from .queues import describe_queue, find_queue_names, refused_queue
from .records import ActionResult, JobDetails, JobPage, QueueInfo, WorkerInfo
from .workers import Connections

#: How many jobs a page has at most.
LONGEST_PAGE = 1_000

Progress = Callable[[int], None]


class QueueInspector:
    """Shows and repairs queues.  It works without Dramatiq, and only the
    methods that say so write anything: a look never creates a queue.

    Parameters:
      client(redis.Redis | redis.cluster.RedisCluster): The client to use,
        with ``decode_responses`` on or off.
      prefix(str): What the keys of all queues begin with.

    Raises:
      SettingError: When one of these cannot be used.  It is a ValueError.

    Each method that is about one queue raises:
      QueueNotFound: When there is no such queue.
      QueueRefused: When the queue's keys are not what they should be.
      redis.RedisError: When Redis cannot be used.
    """

    def __init__(self, client: Any, *, prefix: str = Settings.prefix) -> None:
        require_client(client)
        self.prefix: str = require_prefix(prefix)
        require_hash_tag(client, prefix)
        self.client: Any = client

    def queue_names(self) -> list[str]:
        """Return the names of all queues.  Takes time with the number of keys
        in the database, in steps that never block Redis for long.
        """
        return find_queue_names(self.client, self.prefix)

    def queues(self, queue_names: Iterable[str] | None = None) -> list[QueueInfo]:
        """Return how some queues are, or all of them.  A queue that is refused
        has a ``problem`` instead, and does not hide the others.
        """
        names = self.queue_names() if queue_names is None else list(queue_names)
        connections = Connections.read(self.client, self.prefix)
        found = []
        for name in names:
            try:
                found.append(self._queue(name, connections))
            except QueueRefused as error:
                found.append(refused_queue(name, self.prefix, str(error)))
            except QueueNotFound:
                if queue_names is not None:  # else it went while the others were looked at
                    raise
        return found

    def queue(self, queue_name: str) -> QueueInfo:
        """Return how a queue is."""
        return self._queue(queue_name, Connections.read(self.client, self.prefix))

    def exists(self, queue_name: str) -> bool:
        """Tell whether there is a queue: whether a job was ever added to it."""
        keys = self._keys(queue_name)
        return describe_queue(self.client, keys, self.prefix, None) is not None

    def is_paused(self, queue_name: str) -> bool:
        """Tell whether a queue is paused."""
        return self._queue(queue_name, None).paused

    def workers(self, queue_name: str) -> tuple[WorkerInfo, ...] | None:
        """Return the workers that wait for jobs of a queue, or None where
        Redis does not say.
        """
        return self.queue(queue_name).workers

    def history(self, queue_name: str) -> QueueHistory:
        """Return what a queue has done lately: the jobs that finished, minute
        by minute, and those that stalled.
        """
        return read_history(self.client, self._existing(queue_name))

    def jobs(self, queue_name: str, state: str, *, offset: int = 0, limit: int = 50, text: str = "") -> JobPage:
        """Return a page of the jobs in one state.

        Parameters:
          queue_name(str)
          state(str): ``wait``, ``paused``, ``active``, ``delayed``,
            ``prioritized``, ``waiting-children``, ``completed``, ``failed``.
          offset(int): Where the page starts, as the page before says.
          limit(int): How many jobs to look at, up to 1,000, or fewer where
            they are large: the page says where the next one starts.
          text(str): Return only those of them with this text in their id,
            name, data or reason, in upper or lower case.
        """
        keys = self._existing(queue_name)
        require_state(state)
        require_whole_number("offset", offset, minimum=0)
        limit = min(require_whole_number("limit", limit, minimum=1), LONGEST_PAGE)
        jobs, looked_at, total = read_page(self.client, keys, state, offset=offset, count=limit, text=text)
        after = offset + looked_at
        return JobPage(tuple(jobs), total, after if looked_at and after < total else None)

    def search(self, queue_name: str, state: str, text: str = "") -> Iterator[JobInfo]:
        """Go through all jobs of one state, or those with a text in their id,
        name, data or reason, in bounded calls.
        """
        keys = self._existing(queue_name)
        return search_jobs(self.client, keys, require_state(state), text=text)

    def job(self, queue_name: str, job_id: str) -> JobDetails:
        """Return one job.

        Raises:
          JobNotFound: When the queue has no such job.
        """
        details = self._details(self._existing(queue_name), job_id)
        if details is None:
            raise JobNotFound(queue_name, job_id)
        return details

    def find(self, queue_name: str, any_id: str) -> list[JobInfo]:
        """Find the jobs with an id, be it that of a job or that of one of
        Dramatiq's messages, as its log lines show it.  For a message id all
        jobs of the queue are looked at, in bounded calls.

        Returns:
          list[JobInfo]: The job, or those of the message, the newest first: it
          has one for each time that it was enqueued, retries included.

        Raises:
          JobNotFound: When there is none.
        """
        keys = self._existing(queue_name)
        details = self._details(keys, any_id)
        found = [details.job] if details else jobs_of_message(self.client, keys, any_id)
        if not found:
            raise JobNotFound(queue_name, any_id)
        return found

    def retry(self, queue_name: str, job_ids: Iterable[str], *, progress: Progress | None = None) -> ActionResult:
        """Write: make failed jobs available again, with no stalls, attempts or
        failure on record.

        Parameters:
          queue_name(str)
          job_ids(Iterable[str])
          progress(Callable): Called now and then with how many are through.
        """
        return act(job_ids, retrying(self.client, self._existing(queue_name)), progress)

    def failed_ids(self, queue_name: str, *, stalled: bool = False) -> list[str]:
        """Return the ids of all failed jobs, or of those that had stalled too
        often, the oldest first.
        """
        if stalled:
            jobs = self.search(queue_name, "failed", STALLED)
            ids = [job.job_id for job in jobs if job.stalls and job.reason.startswith(STALLED)]
        else:
            ids = [id_to_text(job_id) for job_id in ids_in(self.client, self._existing(queue_name), "failed")]
        return ids[::-1]

    def remove(self, queue_name: str, job_ids: Iterable[str], *, progress: Progress | None = None) -> ActionResult:
        """Write: remove jobs, whatever their state.  One that a worker runs
        stays, as does one that waits for other jobs of its flow, and the next
        one of a job scheduler.  A flow parent no longer waits for it.
        """
        size = batch_size_for(self._queue(queue_name, None).counts)
        return act(job_ids, removing(self.client, self._keys(queue_name)), progress, batch_size=size)

    def promote(self, queue_name: str, job_ids: Iterable[str], *, progress: Progress | None = None) -> ActionResult:
        """Write: make delayed jobs available now."""
        return act(job_ids, promoting(self.client, self._existing(queue_name)), progress)

    def pause(self, queue_name: str) -> None:
        """Write: pause a queue for the workers of every runtime.  Jobs that
        run already go on.
        """
        set_paused(self.client, self._existing(queue_name), True)

    def resume(self, queue_name: str) -> None:
        """Write: resume a queue."""
        set_paused(self.client, self._existing(queue_name), False)

    def _queue(self, queue_name: str, connections: Connections | None) -> QueueInfo:
        info = describe_queue(self.client, self._keys(queue_name), self.prefix, connections)
        if info is None:
            raise QueueNotFound(queue_name, self.prefix, self.queue_names())
        return info

    def _details(self, keys: QueueKeys, job_id: str) -> JobDetails | None:
        details = read_details(self.client, keys, job_id)
        return None if details.job.state == "missing" and not details.states else details

    def _existing(self, queue_name: str) -> QueueKeys:
        self._queue(queue_name, None)
        return self._keys(queue_name)

    def _keys(self, queue_name: str) -> QueueKeys:
        return QueueKeys(queue_name, self.prefix)


def require_state(state: str) -> str:
    """Return a state that there is.

    Raises:
      SettingError: For anything else.
    """
    if state not in STATES:
        raise SettingError("state", "argument", state, f"one of {', '.join(STATES)}")
    return state
