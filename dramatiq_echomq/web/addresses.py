"""Names of queues and ids of jobs in addresses and forms: any bytes, slashes and dots among them."""

from __future__ import annotations

import re

from werkzeug.routing import BaseConverter, ValidationError

from ..protocol.keys import id_to_bytes, id_to_text

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@")


def to_address(text: str) -> str:
    """Write a text with the characters that no server, proxy or browser
    changes: ``a/b`` is ``a~2Fb``.  A dot in front might lead elsewhere.
    """
    escaped = "".join(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in id_to_bytes(text))
    return "~2E" + escaped[1:] if escaped.startswith(".") else escaped or "~"


def from_address(address: str) -> str:
    """Return the text that :func:`to_address` has written.

    Raises:
      ValueError: When it did not write this.
    """
    raw = re.sub(rb"~([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), id_to_bytes(address))
    text = "" if address == "~" else id_to_text(raw)
    if to_address(text) != address:
        raise ValueError(f"{address!r} is not the address of a queue or a job")
    return text


class AddressConverter(BaseConverter):
    """A text in the path of an address."""

    regex = "[A-Za-z0-9_.:@~-]+"

    def to_python(self, value: str) -> str:
        try:
            return from_address(value)
        except ValueError:
            raise ValidationError from None

    def to_url(self, value: str) -> str:
        return to_address(value)
