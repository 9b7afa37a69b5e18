"""Policy documents and patterns: objects in a template, JSON text in most API calls, either in an answer."""

from __future__ import annotations

import json
from typing import Any

from stackhold.engines.cloudformation.documents import canonical, parsed, sort_key


def as_text(document: Any) -> str:
    """What a call takes. Text goes as it was written; an object keeps its key order."""
    return document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))


def as_data(document: Any) -> Any:
    """What a document says: parsed when it is JSON text, as it is otherwise."""
    return parsed(document)


def same(one: Any, other: Any) -> bool:
    """Whether two policies say the same, whichever of the two shapes each has."""
    return sort_key(canonical(one)) == sort_key(canonical(other))
