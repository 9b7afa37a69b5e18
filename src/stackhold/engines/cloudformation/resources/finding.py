"""What the handlers' `find` methods share: whose a resource is, and how to compare what must not be stored.

A resource is ours by its ownership tags, or by a name that only one create could have made. What may hold a secret
(a URL) is kept as a digest and compared as one.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.documents import canonical, sort_key
from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.resources import tags
from stackhold.model.ids import PhysicalId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Handler, Lost, Seen

DIGEST: Final = "sha256"
_URL: Final = "://"


def named(lost: Lost, physical_id: str, there: Any) -> PhysicalId | None:
    """The resource of the name that a create was sent with, if it is ours. `there` are its tags, None if it is not
    there at all."""
    if there is None or physical_id in lost.known:
        return None
    return PhysicalId(physical_id) if lost.is_own_name or tags.are_ours(there, lost) else None


def tagged(lost: Lost, items: Iterable[Mapping[str, Any]], *, key: str) -> PhysicalId | None:
    """The first of these with our tags that nobody accounts for. Servers may ignore filters, so tags are compared."""
    for item in items:
        physical_id = PhysicalId(str(item[key]))
        if physical_id not in lost.known and tags.are_ours(item.get("Tags"), lost):
            return physical_id
    return None


def digest(value: Any) -> dict[str, str]:
    """What stands for a value that must not be stored."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr)
    return {DIGEST: hashlib.sha256(text.encode()).hexdigest()}


def is_digest(value: Any) -> bool:
    """Whether a value of a place is only a digest."""
    return isinstance(value, dict) and value.keys() == {DIGEST}


def discreet(properties: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A property that may hold a URL, to be put into a place: URLs as a digest, and not at all while they are not
    wholly known."""
    value = properties.get(name)
    if value is None:
        return {}
    if isinstance(value, str):
        return {name: digest(value) if _URL in value else value}
    return {} if _URL in repr(value) else {name: value}


def content(properties: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A document, to be put into a place as a digest of what it says; nothing while it is not wholly known."""
    value = properties.get(name)
    if value is None or has_unknown(value):
        return {}
    return {name: digest(sort_key(canonical(value)))}


def says(place: Mapping[str, Any], name: str, seen: Any) -> bool:
    """Whether a document says just what `content` has put into the place."""
    return place.get(name) == digest(sort_key(canonical(seen)))


def read_found(
    handler: Handler, ctx: Context, physical_id: PhysicalId, *, names: Iterable[str], place: Mapping[str, Any]
) -> Seen | None:
    """What a resource is of which only these properties' names and its place are known; None when it is gone."""
    plain = {name: value for name, value in place.items() if not is_digest(value)}
    return handler.read(ctx, physical_id, {**{name: {} for name in names}, **plain})


def fits(place: Mapping[str, Any], name: str, seen: Any) -> bool:
    """Whether what is seen is what the place says; a place that says nothing fits everything."""
    wanted = place.get(name)
    if wanted is None:
        return True
    return digest(seen) == wanted if is_digest(wanted) else bool(seen == wanted)
