"""What Prometheus is told: by each worker process what it did, and by an exporter how the queues are."""

from .queue_collector import QueueCollector
from .stalled_metrics import StalledMetrics

__all__ = ["QueueCollector", "StalledMetrics"]
