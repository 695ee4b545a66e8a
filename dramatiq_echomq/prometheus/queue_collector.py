from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from logging import Logger
from typing import TYPE_CHECKING, Any

from dramatiq.logging import get_logger

from ..errors import EchoMQError, QueueNotFound
from ..inspection.inspector import QueueInspector
from ..inspection.records import QueueInfo
from ..protocol.clients import REDIS_ERRORS
from ..settings import Settings
from .processes import require_prometheus_client
from .stalled_metrics import NAMESPACE

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector as _Collector
else:
    _Collector = object  # its client is imported late: see StalledMetrics

#: For how many seconds the names of all queues are remembered, since to find them all keys are looked at.
NAMES_KEPT_FOR = 60.0

#: What is said of each queue, and the labels it has beside ``queue_name``.
GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "queue_jobs": ("Jobs of a queue in each state.", ("state",)),
    "queue_marked_jobs": ("Active jobs that the last check found without a lock.", ()),
    "queue_oldest_waiting_seconds": (
        "How long the oldest job waits that could run next, or at most where it is not known; 0 when none waits.",
        (),
    ),
    "queue_oldest_active_seconds": ("For how long the oldest active job is active; 0 when none is.", ()),
    "queue_paused": ("Whether a queue is paused.", ()),
    "queue_workers": ("Workers that are connected and wait for jobs, where Redis says so.", ()),
    "queue_refused": ("Whether a queue cannot be used: nothing else is said of it.", ()),
}


class QueueCollector(_Collector):
    """Tells Prometheus how queues are.  Redis is asked when the metrics are
    scraped, so nothing that a dead process has said last is shown, and one
    exporter speaks for all workers.  ``dramatiq-echomq metrics`` is one.

    Example:

      >>> from prometheus_client import REGISTRY
      >>> REGISTRY.register(QueueCollector(redis.Redis()))

    The gauges, with the label ``queue_name``:

    * ``dramatiq_echomq_queue_jobs``, by ``state``: wait, paused, active,
      delayed, prioritized, waiting_children, completed, failed.
    * ``dramatiq_echomq_queue_marked_jobs``
    * ``dramatiq_echomq_queue_oldest_waiting_seconds``
    * ``dramatiq_echomq_queue_oldest_active_seconds``
    * ``dramatiq_echomq_queue_paused``
    * ``dramatiq_echomq_queue_workers``
    * ``dramatiq_echomq_queue_refused``

    and without a label ``dramatiq_echomq_redis_up``: while it is 0, nothing is
    said of queues.  A queue that does not exist is not shown.

    Parameters:
      client(redis.Redis | redis.cluster.RedisCluster)
      prefix(str): What the keys of all queues begin with.
      queues(Iterable[str]): The queues.  Defaults to all that there are.

    Raises:
      ImportError: When the package ``prometheus-client`` is missing.
      SettingError: When a parameter cannot be used.  It is a ValueError.
    """

    def __init__(self, client: Any, *, prefix: str = Settings.prefix, queues: Iterable[str] | None = None) -> None:
        require_prometheus_client(type(self).__name__)
        self.logger: Logger = get_logger(__name__, type(self))
        self.inspector: QueueInspector = QueueInspector(client, prefix=prefix)
        self.queues: tuple[str, ...] | None = None if queues is None else tuple(queues)
        self._found: list[str] = []
        self._found_at = float("-inf")

    def describe(self) -> Iterator[Metric]:
        """Return what is exported, without any value: Redis need not be there yet."""
        yield _gauge("redis_up", "Whether Redis could be asked.")
        yield from _gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Ask Redis how the queues are."""
        up = _gauge("redis_up", "Whether Redis could be asked.")
        try:
            queues = self._look()
        except (*REDIS_ERRORS, EchoMQError) as error:
            self.logger.warning("Redis cannot be asked how queues are: %s: %s", type(error).__name__, error)
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        gauges = _gauges()
        for queue in queues:
            _describe(queue, gauges)
        yield from gauges.values()

    def _look(self) -> list[QueueInfo]:
        names = self._names()
        while True:
            try:
                return self.inspector.queues(names)
            except QueueNotFound as error:
                names.remove(error.queue_name)

    def _names(self) -> list[str]:
        if self.queues is not None:
            return list(self.queues)
        if time.monotonic() - self._found_at >= NAMES_KEPT_FOR:
            self._found, self._found_at = self.inspector.queue_names(), time.monotonic()
        return list(self._found)


def _describe(queue: QueueInfo, gauges: dict[str, GaugeMetricFamily]) -> None:
    def say(name: str, value: float, *labels: str) -> None:
        gauges[name].add_metric([queue.name, *labels], value)

    say("queue_refused", bool(queue.problem))
    if queue.problem:
        return
    for state, number in dataclasses.asdict(queue.counts).items():
        say("queue_jobs", number, state)
    say("queue_marked_jobs", queue.marked)
    say("queue_oldest_waiting_seconds", (queue.waiting_for or 0) / 1000)
    say("queue_oldest_active_seconds", (queue.active_for or 0) / 1000)
    say("queue_paused", queue.paused)
    if queue.workers is not None:
        say("queue_workers", len(queue.workers))


def _gauges() -> dict[str, GaugeMetricFamily]:
    return {name: _gauge(name, text, "queue_name", *labels) for name, (text, labels) in GAUGES.items()}


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"{NAMESPACE}_{name}", text, labels=labels)
