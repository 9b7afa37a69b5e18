"""Whether a server keeps the three conditions that locks stand on, tried on a key of its own.

A server that ignores one would let two runs act at once, and nothing else would show it. The proof refuses by
name; it leaves a mark in the bucket so that later runs need one read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stackhold.errors import StoreConflict, StoreRefused
from stackhold.model.instant import iso
from stackhold.ports.store import Absent, Stored, Version

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.instant import Instant
    from stackhold.ports.store import Store

MARKER_KEY = "_stackhold/conditions-proved.json"
PROBE_PREFIX = "_stackhold/probe-"
_CREATE = "create if absent (If-None-Match: *)"
_REPLACE = "replace if this version (If-Match on PUT)"
_DELETE = "delete if this version (If-Match on DELETE)"


def prove_conditions(store: Store, key: str, *, server: str, bucket: str) -> None:
    """Try each condition where it holds and where it must refuse; raises `StoreRefused` naming the first broken one.

    `key` must be new; the caller removes what is left of it.
    """

    def refuse(condition: str, how: str) -> StoreRefused:
        return StoreRefused(
            f"the server {server} {how} for bucket {bucket!r}: {condition}",
            hint="Locks would be worthless there. Use another server or a newer release of it.",
        )

    def must_hold(condition: str, act: Callable[[], object]) -> None:
        try:
            act()
        except StoreConflict as error:
            raise refuse(condition, "refuses a condition that holds") from error
        except StoreRefused as error:
            if "NotImplemented" in error.message:
                raise refuse(condition, "does not know a condition") from error
            raise

    def must_refuse(condition: str, act: Callable[[], object]) -> None:
        try:
            act()
        except StoreConflict:
            return
        raise refuse(condition, "ignores a condition")

    must_hold(_CREATE, lambda: store.write(key, b'{"probe": 1}\n', expect=None))
    first = _version(store, key)
    must_refuse(_CREATE, lambda: store.write(key, b'{"probe": 2}\n', expect=None))
    must_hold(_REPLACE, lambda: store.write(key, b'{"probe": 3}\n', expect=first))
    must_refuse(_REPLACE, lambda: store.write(key, b'{"probe": 4}\n', expect=first))
    must_refuse(_DELETE, lambda: store.delete(key, expect=first))
    second = _version(store, key)
    if second == first:
        raise refuse(_REPLACE, "gives two writes one version")
    must_hold(_DELETE, lambda: store.delete(key, expect=second))
    if not isinstance(store.read(key), Absent):
        raise refuse(_DELETE, "does not delete")


def marker(endpoint: str, now: Instant) -> bytes:
    """The mark that a proof leaves."""
    content = {"server": _host(endpoint), "provedAt": iso(now), "conditions": [_CREATE, _REPLACE, _DELETE]}
    return (json.dumps(content, indent=2) + "\n").encode()


def marks(data: bytes, endpoint: str) -> bool:
    """Whether a mark speaks of this server and of all three conditions. A copied bucket brings its old mark along."""
    try:
        content = json.loads(data)
        return bool(content["server"] == _host(endpoint) and {_CREATE, _REPLACE, _DELETE} <= set(content["conditions"]))
    except (ValueError, KeyError, TypeError):
        return False


def _host(endpoint: str) -> str:
    return urlsplit(endpoint).hostname or endpoint


def _version(store: Store, key: str) -> Version:
    found = store.read(key)
    if not isinstance(found, Stored):
        raise StoreRefused(f"{store.facts.url} does not show an object that was just written", key=key)
    return found.version
