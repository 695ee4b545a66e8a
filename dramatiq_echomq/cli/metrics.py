from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

import click

from ..errors import EchoMQError, QueueNotFound
from ..protocol.clients import REDIS_ERRORS
from ..protocol.logtext import printable
from .exits import MISUNDERSTOOD, UNUSABLE, Failure
from .session import Session, any_queues, with_session
from .stopping import StopSignals


@click.command()
@any_queues
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9192, show_default=True, metavar="N", help="0 for a free one."
)
@with_session()
def metrics(session: Session, queue_names: tuple[str, ...], host: str, port: int) -> None:
    """Tell Prometheus how queues are, until SIGTERM or Ctrl-C.

    All queues, or those named. Redis is asked at each scrape, so one such process speaks for the
    workers of all machines. What the workers do is exported by StalledMetrics in each of them.
    """
    if find_spec("prometheus_client") is None:
        needed = 'this needs prometheus_client, not installed here: pip install "dramatiq-echomq[prometheus]"'
        raise Failure(needed, MISUNDERSTOOD)
    from prometheus_client import CollectorRegistry, start_http_server

    from ..prometheus import QueueCollector

    registry = CollectorRegistry()
    registry.register(QueueCollector(session.client, prefix=session.settings.prefix, queues=queue_names or None))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise Failure(f"cannot listen on {host}:{port}: {error.strerror or error}", UNUSABLE) from None
    stop = StopSignals()
    address = f"http://{host}:{server.server_port}/metrics"
    print(f"Metrics are at {address}", file=sys.stderr, flush=True)
    for unknown in _unknown_ones(session, queue_names):
        print(f"A queue is left out while it is not there: {printable(unknown)}", file=sys.stderr, flush=True)
    if session.as_json:
        session.answer({"url": address})
    stop.wait()
    server.shutdown()
    thread.join()


def _unknown_ones(session: Session, queue_names: Iterable[str]) -> Iterator[str]:
    """Say which queues there are not, as far as Redis can be asked: whatever is wrong with it, scrapes tell."""
    for name in queue_names:
        try:
            session.inspector.queue(name)
        except QueueNotFound as error:
            yield str(error)
        except (*REDIS_ERRORS, EchoMQError):
            continue
