"""A server that says it is an old Redis."""

from __future__ import annotations

import contextlib
import socketserver
import threading


class OldRedis:
    """Answers like a Redis of some version that has none of our scripts.

    Parameters:
      version(str): Before 6.0 it knows no HELLO.
      info(bool): Whether INFO may be asked.

    Attributes:
      asked(list): The commands that it was sent, in capitals.
    """

    def __init__(self, version: str, *, info: bool = True) -> None:
        self.version = version
        self.info = info
        self.asked: list[str] = []
        old = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError, ValueError):
                    while command := self._command():
                        old.asked.append(command[0].upper())
                        self.wfile.write(old.answer([part.upper() for part in command]))

            def _command(self) -> list[str]:
                header = self.rfile.readline()
                parts = []
                for _ in range(int(header[1:]) if header else 0):
                    size = int(self.rfile.readline()[1:])
                    parts.append(self.rfile.read(size + 2)[:-2].decode("latin-1"))
                return parts

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> OldRedis:
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, command: list[str]) -> bytes:
        if command[0] == "HELLO" and self.version >= "6":
            facts = ["server", "redis", "version", self.version, "proto", int((command[1:] or ["2"])[0])]
            sign = b"%%%d\r\n" % (len(facts) // 2) if command[1:2] == ["3"] else b"*%d\r\n" % len(facts)
            return sign + b"".join(map(encoded, facts))
        if command[0] == "EVALSHA":
            return b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
        if command[0] == "EVAL":
            return b"-ERR Error running script: @user_script: 1: Unknown Redis command called from Lua script\r\n"
        if command[0] == "INFO" and self.info:
            return encoded(f"redis_version:{self.version}\r\nmaxmemory_policy:noeviction\r\n")
        if command[0] in ("PING", "SELECT"):
            return b"+OK\r\n"
        return f"-ERR unknown command `{command[0]}`, with args beginning with: \r\n".encode()


def encoded(value: str | int) -> bytes:
    if isinstance(value, int):
        return b":%d\r\n" % value
    return b"$%d\r\n%b\r\n" % (len(value), value.encode())
