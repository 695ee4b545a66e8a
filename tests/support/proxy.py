"""A proxy before a server that loses replies or says nothing, and a server that never says anything."""

from __future__ import annotations

import contextlib
import socket
import threading


class LossyProxy:
    """Passes everything on, but for the replies that are to be lost: then the command has
    run, and the client's connection breaks before the reply arrives.

    Parameters:
      port(int): The server's port on the loopback interface.

    Attributes:
      silent(Event): While it is set, nothing gets through in either direction, and no connection breaks.
    """

    def __init__(self, port: int) -> None:
        self.server_port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.silent = threading.Event()
        self.to_lose: list[bytes] = []
        self.lost: list[bytes] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> LossyProxy:
        return self

    def __exit__(self, *_: object) -> None:
        # To close it ends no wait for a connection: that would go on, perhaps for one to whoever has its number next.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(20)
        self.listener.close()

    def lose(self, *parts: bytes) -> None:
        """Lose a reply for each of these, in this order: that of the next request with this in it."""
        self.to_lose += parts

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                client.close()
                continue
            losing = threading.Event()
            for pump in (self._pass_requests, self._pass_replies):
                threading.Thread(target=pump, args=(client, server, losing), daemon=True).start()

    def _pass_requests(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while request := client.recv(65536):
                if self.silent.is_set():
                    continue
                if self.to_lose and self.to_lose[0] in request:
                    self.lost.append(self.to_lose.pop(0))
                    losing.set()
                server.sendall(request)
            server.shutdown(socket.SHUT_RDWR)

    def _pass_replies(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with client, server, contextlib.suppress(OSError):
            while reply := server.recv(65536):
                if self.silent.is_set():
                    continue
                if losing.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(reply)


class Switch(LossyProxy):
    """A proxy that can lead new connections to another server, as a name that fails over does."""

    def __init__(self, port: int) -> None:
        self.opened: list[socket.socket] = []
        super().__init__(port)

    def to(self, port: int, *, drop: bool) -> None:
        """Lead to another port from now on, and drop the connections that there are, or not."""
        self.server_port = port
        for connection in self.opened if drop else ():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _pass_requests(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        self.opened.append(client)
        super()._pass_requests(client, server, losing)


class SendsTwice:
    """A client whose every command reaches the server twice. The first reply gets lost."""

    def __init__(self, client):
        self.client = client

    def execute_command(self, *args, **options):
        self.client.execute_command(*args, **options)
        return self.client.execute_command(*args, **options)

    def unlink(self, *names):
        return self.client.unlink(*names)


class SilentServer:
    """Accepts connections and never answers."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)  # the kernel accepts
        self.port = int(self.listener.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> SilentServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
