from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Flask

from .. import __version__
from ..protocol.clients import client_from, client_of, client_with
from ..settings import Settings
from ..validation import require_client
from . import acts, guard, looks, problems
from .addresses import AddressConverter
from .backing import Backing, backing, hold
from .notices import notice
from .shown import FILTERS, FUNCTIONS, printable


def make_app(
    client: Any = None,
    *,
    url: str | None = None,
    prefix: str | None = None,
    actions: bool = False,
    trusted_hosts: Sequence[str] | None = None,
    max_stalled_count: int | None = None,
    batch_size: int | None = None,
) -> Flask:
    """Make a page that shows queues, as a WSGI application to serve or to
    mount under a prefix.  It has no login of its own.  Nothing is connected to
    before the first request.

    Parameters:
      client(redis.Redis | redis.cluster.RedisCluster): The Redis to look at.
        Connections of its own are made to it.
      url(str): Its URL, when there is no client.  Defaults to ``REDIS_URL`` of
        the environment, and else to ``redis://localhost:6379/0``.
      prefix(str): What the keys of all queues begin with.
      actions(bool): Whether jobs may be retried, removed and promoted, and
        queues paused, resumed and checked.  Defaults to False: it only shows.
      trusted_hosts(Sequence[str]): The names under which the page may be asked
        for, such as ``queues.example.com``; a dot in front takes all below it.
        Defaults to None: any.
      max_stalled_count(int): For checks, how often a job may stall and come
        back.
      batch_size(int): For checks, how many ids one script call looks at.

    Settings that are None are looked up where workers look them up.

    Raises:
      SettingError: When one of these cannot be used.  It is a ValueError.
    """
    settings = Settings.load(prefix=prefix, max_stalled_count=max_stalled_count, batch_size=batch_size)
    app = PageApp(__name__.rpartition(".")[0])
    app.config["MAX_CONTENT_LENGTH"] = app.config["MAX_FORM_MEMORY_SIZE"] = acts.LONGEST_FORM
    given = client_of() if client is None and url is None else client_from(client, url)
    require_client(given)
    hold(app, Backing(client_with(given, resending=0), settings, actions=actions, trusted_hosts=trusted_hosts))
    for part in (guard, looks, acts, problems):
        part.register(app)
    return app


class PageApp(Flask):
    """What the templates and addresses of all pages share."""

    # What Redis holds need not be text that a browser could be sent.
    jinja_options = {**Flask.jinja_options, "finalize": printable}  # noqa: RUF012

    def __init__(self, import_name: str) -> None:
        super().__init__(import_name)
        self.url_map.converters["text"] = AddressConverter
        self.jinja_env.filters.update(FILTERS)
        self.jinja_env.globals.update(FUNCTIONS, version=__version__, backing=backing, notice=notice)
        self.jinja_env.trim_blocks = self.jinja_env.lstrip_blocks = True
