from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import redis

from ..errors import QueueRefused
from .clients import drop_idle_connections
from .interruptible import SENT_AGAIN, as_sent_again
from .keys import id_to_bytes
from .logtext import on_one_line
from .rights import Rights
from .server_version import require_known_commands, require_version

#: What a script is told as the time in ms.  At 0 it takes the server's: the clocks
#: of workers differ.  Only tests set another.
TIME = 0

#: What the scripts put before the errors that they return themselves.
REFUSAL = "ECHOMQ "


class Script:
    """A Lua script that runs on the server.

    Parameters:
      file_name(str): The file in ``lua/``.  The number before ``.lua`` says
        how many keys the script takes.
      text(str): The script.

    Attributes:
      code(str): The script without what it says above itself.
    """

    def __init__(self, file_name: str, text: str) -> None:
        self.file_name = file_name
        self.number_of_keys: int = int(file_name.removesuffix(".lua").rpartition("-")[2])
        self.text = text
        self.sha: str = hashlib.sha1(text.encode()).hexdigest()
        self.code: str = text.partition("--]]\n")[2]
        self._rights = Rights(file_name, self.code)

    def __call__(
        self,
        client: Any,
        keys: Sequence[Any],
        args: Sequence[Any],
        *,
        only_reads: bool = False,
        sent_again: tuple[int, bytes] | None = None,
    ) -> Any:
        """Run the script and return its reply with all texts as bytes, whatever
        the client's ``decode_responses`` is: ids need not be text.

        Parameters:
          client(redis.Redis)
          keys(Sequence)
          args(Sequence)
          only_reads(bool): Whether a call with these arguments writes nothing, so
            that a user who may only read can make it.
          sent_again(tuple): The place of an argument, and what stands there when
            the call is sent again: by a client of ours, whose reply was lost, or
            in here, where that may have happened before.

        Raises:
          QueueRefused: When the script found the queue unfit, or the user may not
            run one of its commands.
          ServerTooOld: When Redis is older than 6.2.  It is asked before a
            script is loaded.
          redis.RedisError: When Redis cannot be used.
        """
        if len(keys) != self.number_of_keys:
            raise TypeError(f"{self.file_name} takes {self.number_of_keys} keys, not {len(keys)}")
        try:
            if not only_reads:
                self._rights.require(client, lambda commands: self._refused(client, keys[0], commands))
            try:
                return self._run(client, keys, args, sent_again)
            except redis.exceptions.ReadOnlyError:
                # Nothing was written now. After a failover the address of the old master may lead to the new one.
                drop_idle_connections(client)
                return self._run(client, keys, _again(args, sent_again), sent_again)
        except redis.ResponseError as error:
            if str(error).startswith(REFUSAL):
                raise QueueRefused(on_one_line(str(error).removeprefix(REFUSAL))) from None
            if not only_reads:
                self._rights.require_still(client, error)
            require_known_commands(client, error)
            raise

    def _run(
        self, client: Any, keys: Sequence[Any], args: Sequence[Any], sent_again: tuple[int, bytes] | None = None
    ) -> Any:
        how: dict[str, Any] = {}
        if sent_again is not None:
            at, word = sent_again
            how[SENT_AGAIN] = 3 + len(keys) + at, word  # behind the command, the script and the number of keys
        try:
            return self._execute(client, "EVALSHA", self.sha, keys, args, **how)
        except redis.exceptions.NoScriptError:
            require_version(client)
            return self._execute(client, "EVAL", self.text, keys, _again(args, sent_again), **how)

    def _refused(self, client: Any, key: Any, commands: Sequence[str]) -> Sequence[bytes]:
        found: Sequence[bytes] = self._execute(client, "EVAL", load("checkRights-1.lua").text, [key], commands)
        return found

    def _execute(
        self, client: Any, command: str, script: str, keys: Sequence[Any], args: Sequence[Any], **how: Any
    ) -> Any:
        # The name of a queue may have bytes that are no UTF-8, as ids may.
        words = [id_to_bytes(word) if isinstance(word, str) else word for word in (*keys, *args)]
        try:
            return client.execute_command(command, script, len(keys), *words, NEVER_DECODE=True, **how)
        except redis.ResponseError as error:
            if "-READONLY " in str(error):  # as Redis before 7 has it, within an error of the script
                raise redis.exceptions.ReadOnlyError(str(error)) from error
            raise


def _again(args: Sequence[Any], sent_again: tuple[int, bytes] | None) -> Sequence[Any]:
    return args if sent_again is None else as_sent_again(args, sent_again)


@cache
def load(file_name: str) -> Script:
    """Load a script of ``lua/``, once.

    Parameters:
      file_name(str): Say ``moveStalledJobsToWait-8.lua``.
    """
    return Script(file_name, (files("dramatiq_echomq.lua") / file_name).read_text("utf-8"))
