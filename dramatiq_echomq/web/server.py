"""The page as a process of its own."""

from __future__ import annotations

import ipaddress
import logging
import signal
from collections.abc import Sequence
from typing import Any

from waitress.server import create_server

logger = logging.getLogger("dramatiq_echomq.web")

#: The names of this machine for itself.
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

#: How many requests are answered at once.
THREADS = 4


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can connect to a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_to_trust(host: str, others: Sequence[str]) -> list[str] | None:
    """Return the names under which the page may be asked for, or None for any.

    On loopback these are few, since only browsers of this machine ask there.
    """
    if is_loopback(host):
        return [*LOOPBACK_NAMES, f"[{host}]" if ":" in host else host, *others]
    return list(others) or None


class PageServer:
    """Serves the page.

    Parameters:
      app(Flask)
      host(str)
      port(int): 0 for any that is free.

    Attributes:
      address(str): Where the page is.

    Raises:
      OSError: When nothing can be served there.
    """

    def __init__(self, app: Any, host: str, port: int) -> None:
        self.host = host
        self._server = create_server(app, host=host, port=port, threads=THREADS, ident="dramatiq-echomq")
        # A name such as localhost may stand for several addresses.
        sockets = getattr(self._server, "effective_listen", None) or [(host, self._server.effective_port)]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{sockets[0][1]}/"

    def run(self, *, actions: bool) -> None:
        """Serve until SIGTERM or Ctrl-C, and log what whoever can connect may do."""
        logger.info("The page is at %s and %s.", self.address, _what_it_may(actions))
        logger.warning(
            "The page has no login of its own: whoever can connect to it sees all jobs with their arguments%s. %s",
            " and can change them" if actions else "",
            "Here only this machine can."
            if is_loopback(self.host)
            else "Let a proxy with a login stand in front of it, or bind it to 127.0.0.1.",
        )
        signal.signal(signal.SIGTERM, _stop)
        self._server.run()  # returns after either signal, when requests have been answered
        logger.info("The page has stopped.")


def _what_it_may(actions: bool) -> str:
    return "may change jobs and queues" if actions else "only shows; --allow-actions lets it change jobs and queues"


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt
