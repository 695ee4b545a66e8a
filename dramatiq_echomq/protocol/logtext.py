"""What log lines and errors show of texts that anybody may have written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: How many ids, how much of each, and how much of a text from Redis a log line shows.
MOST_IDS = 10
ID_LENGTH_SHOWN = 64
LONGEST_TEXT = 400


def on_one_line(text: str) -> str:
    """Return a text for a log line, whatever is in it."""
    return printable(text[:LONGEST_TEXT]) + ("…" if len(text) > LONGEST_TEXT else "")


def printable(text: str) -> str:
    """Return a text in which nothing breaks a line, moves a cursor or cannot be encoded."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def counted(number: int, what: str) -> str:
    """Return a number of things, such as ``1 job`` or ``2 jobs``."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def ids_text(
    job_ids: Iterable[str], names: Mapping[str, str] | None = None, message_ids: Mapping[str, str] | None = None
) -> str:
    """Return ids for a log line, with the names and messages of the jobs where
    they are known: a few, none of them long, on one line whatever is in them.
    """
    ids, names, message_ids = list(job_ids), names or {}, message_ids or {}
    texts = [job_text(job_id, names.get(job_id, ""), message_ids.get(job_id, "")) for job_id in ids[:MOST_IDS]]
    return ", ".join(texts) + (f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else "")


def job_text(job_id: str, name: str = "", message_id: str = "") -> str:
    """Return a job for a log line, with what else is known of it.  Dramatiq's
    own lines show the id of the message.
    """
    more = [_quoted(name)] if name else []
    if message_id and message_id != job_id:
        more.append(f"message {_quoted(message_id)}")
    return _quoted(job_id) + (f" ({', '.join(more)})" if more else "")


def _quoted(text: str) -> str:
    return repr(text[:ID_LENGTH_SHOWN]) + ("…" if len(text) > ID_LENGTH_SHOWN else "")
