"""Tags between template, ownership and AWS's two shapes.

Three layers meet on a resource: the stack's tags, the resource's own above them, and the ownership tags on top.
Services take a list of `Key`/`Value` or a map; here everything is a map until the call. What a template did not
write (`aws:` and `stackhold:` keys) never leaves a read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Lost, Want

OWNERSHIP_PREFIX: Final = "stackhold:"
"""Of the ownership tags: `stackhold:stack`, `…:region`, `…:run`, `…:logical-id`."""
_OWNER: Final = ("stack", "region", "logical-id", "run")
_NOT_THE_TEMPLATES: Final = ("aws:", OWNERSHIP_PREFIX)

TagList = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class TagChange:
    """What a pair of tag and untag calls must send."""

    put: Mapping[str, str]
    remove: tuple[str, ...]


def as_map(tags: Any) -> dict[str, str]:
    """A map from either shape, of either spelling (`Key` or `key`); None is no tags."""
    if not tags:
        return {}
    if isinstance(tags, dict):
        return {str(key): _text(value) for key, value in tags.items()}
    return {str(_field(tag, "Key")): _text(_field(tag, "Value")) for tag in tags}


def as_list(tags: Mapping[str, str]) -> TagList:
    """The list shape, sorted by key so that equal tags make equal requests."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def for_create(want: Want) -> dict[str, str]:
    """All three layers, for a create call."""
    return {**want.stack_tags, **as_map(want.properties.get("Tags")), **want.tags}


def of_template(want: Want) -> dict[str, str]:
    """Stack tags and the resource's own: what an update may change."""
    return {**want.stack_tags, **as_map(want.properties.get("Tags"))}


def visible(tags: Any) -> dict[str, str]:
    """What a template could have written, as a map."""
    return {key: value for key, value in as_map(tags).items() if not key.startswith(_NOT_THE_TEMPLATES)}


def visible_list(tags: Any) -> TagList:
    """What a template could have written, as a list sorted by key."""
    return as_list(visible(tags))


def hidden(tags: Any) -> dict[str, str]:
    """The ownership tags among `tags`: a call that replaces all tags must send them again."""
    return {key: value for key, value in as_map(tags).items() if key.startswith(OWNERSHIP_PREFIX)}


def change(old: Any, new: Mapping[str, str]) -> TagChange:
    """From the recorded `Tags` to what `of_template` gives. Ownership tags are never touched."""
    before = visible(old)
    return TagChange(
        put={key: value for key, value in new.items() if before.get(key) != value},
        remove=tuple(sorted(key for key in before if key not in new)),
    )


def are_ours(tags: Any, sent: Want | Lost) -> bool:
    """Whether a resource carries exactly the ownership tags that this create sends: ours, from this very intent."""
    there = as_map(tags)
    return bool(sent.tags) and all(there.get(key) == value for key, value in sent.tags.items())


def whose(there: Any) -> str:
    """Whose a resource is by its ownership tags; empty when it has none."""
    owner = hidden(there)
    stack, region, logical_id, run = (owner.get(f"{OWNERSHIP_PREFIX}{name}") for name in _OWNER)
    said = f"stack {stack}'s" if stack else "another stack's"
    said += f" ({region})" if region else ""
    said += f", as its {logical_id}" if logical_id else ""
    said += f", made by its run {run}" if run else ""
    return said if owner else ""


def foreign(
    kind: str,
    name: str,
    *,
    service: str,
    operation: str,
    code: str = "AlreadyExists",
    there: Any = None,
    was_overwritten: bool = False,
) -> AwsError:
    """The refusal for a resource that exists and does not carry our ownership tags. `there` are those it carries."""
    owner = whose(there)
    taken = f": the name is taken, it is {owner}" if owner else ""
    touched = (
        "What this call has set on it may differ from what its owner wants: look there for drift."
        if was_overwritten
        else "Nothing was changed on it."
    )
    return AwsError(
        service=service,
        operation=operation,
        code=code,
        reason=f"{kind} {name} exists already and was not made by this run{taken}",
        status=409,
        hint=f"{touched} Choose another name, or import the existing one into the stack to adopt it.",
    )


def _field(tag: Mapping[str, Any], name: str) -> Any:
    return tag.get(name, tag.get(name.lower(), ""))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
