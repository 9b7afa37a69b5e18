"""Policy documents and patterns: objects in a template, JSON text in most API calls, either in an answer."""

from __future__ import annotations

import json
from typing import Any


def as_text(document: Any) -> str:
    """What a call takes. Text goes as it was written; an object keeps its key order."""
    return document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))


def as_data(document: Any) -> Any:
    """What a document says: parsed when it is JSON text, as it is otherwise."""
    if not isinstance(document, str):
        return document
    try:
        return json.loads(document)
    except ValueError:
        return document


def same(one: Any, other: Any) -> bool:
    """Whether two documents say the same, whichever of the two shapes each has."""
    return bool(as_data(one) == as_data(other))
