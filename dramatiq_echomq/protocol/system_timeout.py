from __future__ import annotations

import _socket
import os
import socket
import struct
from typing import Any

#: Seconds and microseconds as the operating system takes them.
TIME = struct.Struct("ll")


def keep_time_in_the_system(connection: Any) -> None:
    """Let the operating system watch over the timeout of a connection.  Python
    would call it twice for each read, to wait and to read, and let go of the
    interpreter's lock each time, for which busy threads then have to queue.

    Connections whose reads are not simply the system's, those of TLS and of
    gevent, keep Python's timeout, and so do all where the system takes none.
    """
    own_socket: Any = getattr(connection, "_sock", None)
    timeout = connection.socket_timeout
    if os.name != "posix" or not timeout or getattr(type(own_socket), "recv", None) is not _socket.socket.recv:
        return
    value = TIME.pack(*divmod(max(int(timeout * 1_000_000), 1), 1_000_000))  # 0 would be for ever
    try:
        own_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
        own_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
    except OSError:  # its time is another, as on some systems of 32 bits
        return
    own_socket.settimeout(None)


def is_timeout(error: BaseException) -> bool:
    """Return whether an error of redis-py means that the system's timeout has come."""
    return isinstance(error.__context__, BlockingIOError)
