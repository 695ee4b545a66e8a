"""The little of msgpack that scripts are given."""

from __future__ import annotations

import struct


def msgpack_list(texts: list[bytes]) -> bytes:
    """Encode a list of texts as msgpack (array 32 of str 32)."""
    return b"\xdd" + struct.pack(">I", len(texts)) + b"".join(b"\xdb" + struct.pack(">I", len(t)) + t for t in texts)
