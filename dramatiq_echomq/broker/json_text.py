from __future__ import annotations

import json
import re
from collections.abc import Mapping

#: Whatever JSON holds, its numbers stay text here: some have no place in a float, some more digits than int() takes.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_SPACE = re.compile(r"[ \t\r\n]*")


def members_of(text: str) -> dict[str, str]:
    """Return the members of a JSON object, each as it is written there.

    Raises:
      ValueError: When the text is no JSON object.
    """
    if not isinstance(_DECODER.decode(text), dict):
        raise ValueError("it is JSON, but no object")
    found: dict[str, str] = {}
    at = _after_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        start = _after_space(text, _after_space(text, end) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found[name] = text[start:end]
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return found


def object_of(members: Mapping[str, str]) -> str:
    """Return the JSON object with these members."""
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{value}" for name, value in members.items()) + "}"


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
