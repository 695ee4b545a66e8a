from __future__ import annotations

import logging
from importlib.util import find_spec

import click

from .exits import MISUNDERSTOOD, UNUSABLE, Failure
from .session import Session, with_session


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8642, show_default=True, metavar="N", help="0 for a free one."
)
@click.option("--allow-actions", is_flag=True, help="Let it retry, remove and promote jobs, pause and check queues.")
@click.option("--trusted-host", "trusted_hosts", multiple=True, metavar="NAME", help="A name that it is asked for by.")
@with_session("max_stalled_count", "batch_size")
def web(session: Session, host: str, port: int, allow_actions: bool, trusted_hosts: tuple[str, ...]) -> None:
    """Serve a page to look at queues with, until SIGTERM or Ctrl-C.

    It has no login of its own, and only shows unless told otherwise. On the loopback address it answers
    only to the names of this machine and to each --trusted-host, say that of a proxy in front.
    """
    missing = [name for name in ("flask", "waitress") if find_spec(name) is None]
    if missing:
        needed = f'the page needs {" and ".join(missing)}, not installed here: pip install "dramatiq-echomq[web]"'
        raise Failure(needed, MISUNDERSTOOD)

    from ..web import make_app
    from ..web.server import PageServer, names_to_trust

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    settings = session.settings
    app = make_app(
        session.client,
        prefix=settings.prefix,
        actions=allow_actions,
        trusted_hosts=names_to_trust(host, trusted_hosts),
        max_stalled_count=settings.max_stalled_count,
        batch_size=settings.batch_size,
    )
    try:
        server = PageServer(app, host, port)
    except OSError as error:
        raise Failure(f"the page cannot be served at {host}:{port}: {error.strerror or error}", UNUSABLE) from None
    if session.as_json:
        session.answer({"url": server.address, "actions": allow_actions})
    server.run(actions=allow_actions)
