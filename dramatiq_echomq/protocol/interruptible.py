from __future__ import annotations

from typing import Any

import redis


class InterruptibleRedis(redis.Redis):
    """A client for threads that are interrupted, as TimeLimit and the like do.
    An interrupt between a command and its reply closes the connection: the
    next one to use it would take the reply for that of its own command.
    """

    def _send_command_parse_response(self, conn: Any, command_name: str, *args: Any, **options: Any) -> Any:
        try:
            return super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[no-untyped-call]
        except Exception:
            raise
        except BaseException:
            conn.disconnect()
            raise
