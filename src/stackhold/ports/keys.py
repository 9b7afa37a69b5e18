"""Which keys a store accepts, whatever it is made of.

A key becomes a path in a directory store, so both kinds refuse the same ones: no way up, nothing absolute,
nothing empty between slashes, no control characters, no names that a store keeps for itself.
"""

from __future__ import annotations

from stackhold.errors import InputError

LOCK_NAME = ".lock"
TEMPORARY = ".tmp-"
_LONGEST_PART = 255
_LONGEST_KEY = 1024


def checked_key(key: str) -> tuple[str, ...]:
    """The parts of a key; raises `InputError` when a store must not use it."""
    parts = tuple(key.split("/"))
    if len(key.encode("utf-8", "surrogatepass")) > _LONGEST_KEY or not all(_is_part(part) for part in parts):
        raise InputError(f"{key!r} cannot be a key in a store")
    return parts


def checked_prefix(prefix: str) -> tuple[tuple[str, ...], str]:
    """The whole parts of a prefix, and the beginning of a part that it ends with (empty after a slash)."""
    *parts, rest = prefix.split("/")
    if not all(_is_part(part) for part in parts) or (rest and not _is_part(rest)):
        raise InputError(f"{prefix!r} cannot be a prefix in a store")
    return tuple(parts), rest


def _is_part(part: str) -> bool:
    if part in {"", ".", "..", LOCK_NAME} or part.startswith(TEMPORARY):
        return False
    if any(
        ord(char) < 32 or ord(char) == 127 or char in "\\\ufffe\uffff" or 0xD800 <= ord(char) < 0xE000 for char in part
    ):
        return False
    return len(part.encode()) <= _LONGEST_PART
