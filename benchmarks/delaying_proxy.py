"""A server that is far away: a proxy on the loopback that holds each byte back for a while, in both directions."""

from __future__ import annotations

import asyncio
import threading


class DelayingProxy:
    """Forwards connections to a port.

    Parameters:
      port(int): Where the server is.
      seconds(float): How long each direction takes.
    """

    def __init__(self, port: int, seconds: float) -> None:
        self.server_port = port
        self.seconds = seconds
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> DelayingProxy:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection("127.0.0.1", self.server_port)
        await asyncio.gather(self._forward(reader, to_server[1]), self._forward(to_server[0], writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            self._loop.call_later(self.seconds, writer.write, data)
        self._loop.call_later(self.seconds, writer.close)
