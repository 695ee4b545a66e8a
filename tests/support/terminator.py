"""What puts TLS before a server that was built without it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading

from .servers import free_port


class Terminator:
    """Takes TLS connections and forwards what they say to a port of this machine.

    Parameters:
      target(int): The port of the server.
      context(ssl.SSLContext): With the certificate.
    """

    def __init__(self, target: int, context: ssl.SSLContext) -> None:
        self.target = target
        self.context = context
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # clients that refuse the certificate
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Terminator:
        self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.context))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def _run(self) -> None:
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
        with contextlib.suppress(OSError), contextlib.closing(to_server), contextlib.closing(to_client):
            await asyncio.gather(_forward(from_client, to_server), _forward(from_server, to_client))


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()
