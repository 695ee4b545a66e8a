from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable
from logging import Logger
from typing import Any

from dramatiq.logging import get_logger

from ..errors import EchoMQError, QueueRefused
from ..protocol.clients import REDIS_ERRORS, client_with
from ..protocol.keys import QueueKeys, id_to_text
from ..protocol.logtext import counted, ids_text, on_one_line
from ..protocol.registrations import WorkerRegistration, connection_name, connections_of, is_refusal, server_of
from ..protocol.scripts import load
from ..settings import Settings

#: For how many ms a look keeps others from looking. A bit more than a second: a grace of 3 s is over at the third
#: look after the first one that missed a worker, and not just after it.
THROTTLE = 1_020

#: How many seconds pass between two looks of one who looks alone, and where nobody is registered.
PERIOD = 1.03
PERIOD_WITHOUT_WORKERS = 2.0

#: By how many seconds those may be apart who wait for the same throttle.
SPREAD = 0.05

#: How many seconds to wait after a fault of our own.
AFTER_FAULT = 30.0

#: About how many connections one look asks for, so that it costs Redis 1 ms however many workers there are: of
#: more, each look takes its share, and a crash is seen a second later for each share.
CONNECTIONS_PER_LOOK = 350


class CrashWatch:
    """Finds the worker processes whose connection to Redis has closed, and
    recovers their jobs long before their locks would end.  Each worker with
    the middleware looks, and `dramatiq-echomq run`, but of those who look at the
    same queues only one in each period.

    A worker is gone when no connection with its id and its name was there at
    two looks at least ``crash_grace`` apart, and it did not register another one
    meanwhile.  Then the jobs that it held are released, and one ordinary check
    recovers them.

    Parameters:
      client(redis.Redis)
      settings(Settings)
      queue_names(Callable): Returns the queues to look at.
      check(Callable): Checks one queue at once.  Returns False when it could
        not be done.  It must not raise.
      crash_seen(Callable): Told of each queue of a worker that is gone: the
        name of the queue, of the worker, and the ids of the jobs that it held.
      nothing_held(Callable): Told of each worker that is gone and held no lock
        in some of its queues: its name, and theirs.
      cannot_look(Callable): Told why, when it cannot work here.
    """

    def __init__(
        self,
        *,
        client: Any,
        settings: Settings,
        queue_names: Callable[[], Iterable[str]],
        check: Callable[[str], bool],
        crash_seen: Callable[[str, str, tuple[str, ...]], None],
        nothing_held: Callable[[str, tuple[str, ...]], None],
        cannot_look: Callable[[str], None],
    ) -> None:
        self.logger: Logger = get_logger(__name__, type(self))
        self.client: Any = client_with(client, resending=0)  # an attempt that fails is followed by the next look
        self.settings = settings
        self.queue_names = queue_names
        self.check = check
        self.crash_seen = crash_seen
        self.nothing_held = nothing_held
        self.cannot_look = cannot_look

    def look(self) -> float:
        """Look once, if nobody else just did.  Never raises.

        Returns:
          float: The seconds until the next look, infinity when it cannot work here.
        """
        try:
            return self._look()
        except (*REDIS_ERRORS, EchoMQError) as error:
            if not is_refusal(error):
                self.logger.debug("Could not look for crashed workers: %s", error)
                return PERIOD
            self.cannot_look(
                "Crashed workers are not looked for, their jobs come back once their locks have ended: "
                + on_one_line(str(error))
            )
            return math.inf
        except Exception:
            self.logger.exception("Could not look for crashed workers. It is tried again in %g s.", AFTER_FAULT)
            return AFTER_FAULT

    def _look(self) -> float:
        queues = [QueueKeys(name, self.settings.prefix) for name in sorted(self.queue_names())]
        if not queues:
            return PERIOD
        throttle = queues[0].look_throttle(keys.queue_name for keys in queues)
        wait, *lists = self._run("lookAtWorkers-1.lua", throttle, THROTTLE, *(keys.workers for keys in queues))
        if wait < 0:
            return PERIOD_WITHOUT_WORKERS
        if wait > 0:
            return float(wait / 1000 + random.uniform(0, SPREAD))
        registered = list(zip(queues, lists[::2], lists[1::2], strict=True))
        suspected = {text for _, missing, _ in registered for text in missing}
        others = {text for _, _, rest in registered for text in rest} - suspected
        workers = [*_decoded(suspected).items(), *share_of(_decoded(others)).items()]
        absent = self._absent(server_of(self.client, throttle), dict(workers))
        queues_without_locks: dict[str, list[str]] = {}
        for keys, missing, rest in registered:
            texts = [text for text in (*missing, *rest) if text in absent]
            if texts:
                for worker in self._release(keys, texts[:CONNECTIONS_PER_LOOK]):
                    queues_without_locks.setdefault(worker, []).append(keys.queue_name)
        for worker, queue_names in queues_without_locks.items():
            self.nothing_held(worker, tuple(queue_names))
        return PERIOD

    def _absent(self, server: Any, workers: dict[bytes, WorkerRegistration]) -> set[bytes]:
        """Return those registrations whose connections were made to this run of the
        server and are not there any more.  Of others nothing is known.
        """
        names = connections_of(server, [worker.client_id for worker in workers.values()])
        absent = {
            text: worker
            for text, worker in workers.items()
            if names.get(worker.client_id) != connection_name(worker.worker_id)  # another's with this id proves no life
        }
        if not absent:
            return set()
        # A restart makes a new run id, so no registration from before it counts. That is why the server's uptime,
        # which might be shorter than the grace, need not be looked at.
        run_id = server.info("server").get("run_id")
        return {text for text, worker in absent.items() if worker.run_id == run_id}

    def _release(self, keys: QueueKeys, texts: list[bytes]) -> list[str]:
        """Recover what those of some workers that are gone held in a queue, and
        return the names of those that held nothing.
        """
        jobs: dict[bytes, list[str]] = {}
        offset, anchor = 0, b""
        grace, batch = self.settings.crash_grace, self.settings.batch_size
        while offset >= 0:
            args = [keys.base, grace, batch, offset, anchor, *texts]
            try:
                offset, anchor, *lists = self._run("releaseCrashed-1.lua", keys.workers, *args)
            except QueueRefused as error:  # the checks tell what is wrong with it
                self.logger.debug("Could not look at queue %r: %s", keys.queue_name, error)
                return []
            for text, *ids in lists:
                jobs.setdefault(text, []).extend(id_to_text(job_id) for job_id in ids)
            texts = list(jobs)
        names = {text: worker.name if (worker := WorkerRegistration.decode(text)) else "" for text in jobs}
        for text, job_ids in jobs.items():
            self.crash_seen(keys.queue_name, names[text], tuple(dict.fromkeys(job_ids)))
        if any(jobs.values()):
            if not self.check(keys.queue_name):
                return []  # still registered, and missing anew: it is seen to after another grace
        elif jobs and not self.client.exists(keys.stalled):
            # Locks that had ended before leave jobs to be marked. Where some are, a check would cut their grace short.
            self.check(keys.queue_name)
        if jobs:
            self.client.zrem(keys.workers, *jobs)
        return list(dict.fromkeys(names[text] for text, job_ids in jobs.items() if not job_ids))

    def _run(self, script: str, key: str, *args: Any) -> Any:
        return load(script)(self.client, [key], args)


def crash_text(queue_name: str, worker: str, job_ids: tuple[str, ...]) -> str:
    """Say what a worker that is gone held of a queue."""
    jobs = f"{counted(len(job_ids), 'job')} of queue {queue_name!r} that it ran"
    return f"{_gone(worker)} {jobs}: {ids_text(job_ids)}"


def nothing_held_text(worker: str, queue_names: tuple[str, ...]) -> str:
    """Say that a worker that is gone held nothing of some queues.  It may have
    been idle, or its locks have ended before it was seen to be gone.
    """
    queues = f"queue{'s' if len(queue_names) > 1 else ''} {ids_text(queue_names)}"
    return f"{_gone(worker)} It holds no lock in {queues} (any more)."


def _gone(worker: str) -> str:
    return f"Worker {on_one_line(worker)} is gone, its connection to Redis has closed."


def _decoded(texts: set[bytes]) -> dict[bytes, WorkerRegistration]:
    return {text: worker for text in texts if (worker := WorkerRegistration.decode(text))}


def share_of(workers: dict[bytes, WorkerRegistration]) -> dict[bytes, WorkerRegistration]:
    """Return those that a look at this time asks for, when there are too many for one."""
    shares = math.ceil(len(workers) / CONNECTIONS_PER_LOOK)
    if shares <= 1:
        return workers
    turn = int(time.time() / PERIOD) % shares
    return {text: worker for text, worker in workers.items() if worker.client_id % shares == turn}
