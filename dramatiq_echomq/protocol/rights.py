from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from ..errors import QueueRefused
from .server_version import require_version

#: What may be the name of a command in a script.  One that is only attempted may be refused.
COMMAND = re.compile(r'(?<!attempt\()"([A-Z]{3,})"')

#: What Redis says when it stops a script at a command: since 7 it names the command.
STOPPED = re.compile(
    r"in script: .* no permissions to run the '([\w|]+)'|user executing the script can't run this command"
)

#: The clients whose server is new enough for what looks at rights.
_new_enough: WeakSet[Any] = WeakSet()


class Rights:
    """Sees to it that a script runs only if the user of its client may run
    every command in it: Redis would stop it halfway, and take nothing back.

    Parameters:
      file_name(str): The script's.
      code(str)
    """

    def __init__(self, file_name: str, code: str) -> None:
        self.file_name = file_name
        self.commands = sorted(set(COMMAND.findall(code)))
        self._cleared: WeakSet[Any] = WeakSet()

    def require(self, client: Any, check: Callable[[Sequence[str]], Sequence[bytes]]) -> None:
        """Validate the rights of a client's user, until they suffice.

        Parameters:
          client(redis.Redis)
          check(Callable): Returns the commands among some that are refused.

        Raises:
          QueueRefused: When one is missing.
          ServerTooOld: When Redis is older than 6.2.
        """
        if client in self._cleared:
            return
        if client not in _new_enough:
            require_version(client)
            _new_enough.add(client)
        missing = [command.decode().lower() for command in check(self.commands)]
        if missing:
            names, rights = ", ".join(missing).upper(), " ".join(f"+{name}" for name in missing)
            raise QueueRefused(
                f"needs rights: the Redis user of this client may not run {names}, which {self.file_name} does. "
                f"Nothing was written. Allow it: ACL SETUSER {_user_of(client)} {rights}"
            )
        self._cleared.add(client)

    def require_still(self, client: Any, error: Exception) -> None:
        """Say what it means when a script was stopped after its rights had been
        tried.  From now on they are tried again before it writes.

        Raises:
          QueueRefused: When that is what the error says.
        """
        found = STOPPED.search(str(error))
        if found is None:
            return
        self._cleared.discard(client)
        name = (found[1] or "").upper()
        allow = f" Allow it: ACL SETUSER {_user_of(client)} +{name.lower()}" if name else ""
        raise QueueRefused(
            f"lost a right: the Redis user of this client may not run {name or 'a command'} any more, which "
            f"{self.file_name} does. Redis stopped it there, and what it wrote before stays: see "
            f"`dramatiq-echomq doctor`.{allow}"
        ) from error


def _user_of(client: Any) -> str:
    pool = getattr(client, "connection_pool", None)
    return str(getattr(pool, "connection_kwargs", {}).get("username") or "default")
