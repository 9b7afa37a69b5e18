"""What a resource is called, which token its create carries, and which tags mark it as ours.

All three follow from the run and the logical id alone: a run that goes on after a crash, and one that only looks
at what it left behind, work out the same ones. A name ends in twelve characters of a hash; whatever is cut to fit,
they are not. Nothing here is random.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import NameRule
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, Region, RunId, StackName

TAIL_LENGTH: Final = 12
STACK_TAG: Final = "stackhold:stack"
REGION_TAG: Final = "stackhold:region"
RUN_TAG: Final = "stackhold:run"
LOGICAL_ID_TAG: Final = "stackhold:logical-id"
_OWNERSHIP_TAGS: Final = frozenset({STACK_TAG, REGION_TAG, RUN_TAG, LOGICAL_ID_TAG})
_HARMLESS: Final = "s"
"""Goes before a generated name that would begin with what AWS keeps for itself."""
_BASE36: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Earlier:
    """A create that an earlier run may have sent: it is sent again under the same name, token and tags."""

    run_id: RunId
    token: str | None
    """None when it would go with another request now: a token goes with one request only."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What one run calls what it makes."""

    account: str
    region: Region
    stack: StackName
    run_id: RunId
    earlier: Mapping[LogicalId, Earlier] = field(default_factory=dict)
    """By logical id, where an earlier run's create may still be on its way."""

    def run_of(self, logical_id: LogicalId, replacement: int = 0) -> RunId:
        """The run whose create this is: ours, or the earlier one's that is sent again."""
        before = self.earlier.get(logical_id)
        return before.run_id if before is not None and not replacement else self.run_id

    def name(self, rule: NameRule, properties: Props, logical_id: LogicalId, replacement: int = 0) -> str:
        """The name that a create is sent with."""
        return physical_name(
            rule,
            properties,
            account=self.account,
            region=self.region,
            stack=self.stack,
            logical_id=logical_id,
            run_id=self.run_of(logical_id, replacement),
            replacement=replacement,
        )

    def token(self, logical_id: LogicalId, replacement: int = 0) -> str:
        """The token that a create is sent with."""
        before = self.earlier.get(logical_id)
        if before is not None and before.token and not replacement:
            return before.token
        return token_for(
            account=self.account,
            region=self.region,
            stack=self.stack,
            logical_id=logical_id,
            run_id=self.run_id,
            replacement=replacement,
        )

    def tags(self, logical_id: LogicalId, replacement: int = 0) -> dict[str, str]:
        """The ownership tags that a create is sent with."""
        return ownership_tags(self.stack, self.region, self.run_of(logical_id, replacement), logical_id)


def physical_name(
    rule: NameRule,
    properties: Props,
    *,
    account: str,
    region: Region,
    stack: StackName,
    logical_id: LogicalId,
    run_id: RunId,
    replacement: int = 0,
) -> str:
    """The name that the properties give, or else a generated one that keeps the rule of its type.

    Generated: `<stack>-<logical id>-<tail>`, the first two cut to fit, with `s-` before what is reserved. The tail
    hashes account and region too, for names that are unique beyond a region. `replacement` counts the tries of one run
    to make this resource anew.
    """
    explicit = properties.get(rule.property)
    if isinstance(explicit, str) and explicit:
        return explicit
    suffix = rule.suffix(properties) if rule.suffix else ""
    digest = _digest(account, region, stack, logical_id, run_id, replacement)
    room = rule.limit - TAIL_LENGTH - 1 - len(suffix)
    head = _head(stack, logical_id, room)
    if rule.reserved_part(f"{head}-"):
        head = f"{_HARMLESS}-{_head(stack, logical_id, room - len(_HARMLESS) - 1)}"
    name = f"{head}-{_base36(digest)}"
    return (name.lower() if rule.lower else name) + suffix


def token_for(
    *, account: str, region: Region, stack: StackName, logical_id: LogicalId, run_id: RunId, replacement: int = 0
) -> str:
    """The idempotency token of a create: 32 lower-case hex characters, which fit every service that takes one."""
    return _digest("token", account, region, stack, logical_id, run_id, replacement).hex()[:32]


def ownership_tags(stack: StackName, region: Region, run_id: RunId, logical_id: LogicalId) -> dict[str, str]:
    """The tags that a create call carries beside the template's own, so that it can be found again."""
    return {STACK_TAG: stack, REGION_TAG: region, RUN_TAG: run_id, LOGICAL_ID_TAG: logical_id}


def is_ownership_tag(key: str) -> bool:
    """Whether a tag is one of ours; such tags never count as a property."""
    return key in _OWNERSHIP_TAGS


def is_system_tag(key: str) -> bool:
    """Whether a tag is ours or AWS's own: neither is the template's business."""
    return key.startswith("aws:") or is_ownership_tag(key)


def without_system_tags(tags: Mapping[str, Any]) -> dict[str, Any]:
    """The tags that a template could have asked for."""
    return {key: value for key, value in tags.items() if not is_system_tag(key)}


def _head(stack: str, logical_id: str, room: int) -> str:
    """Stack and logical id in `room` characters: each gets half, and what the other does not need."""
    room = max(room, 1)
    stack = re.sub(r"^[^A-Za-z]+", "", re.sub("-+", "-", stack)).strip("-") or "s"
    half = (room - 1) // 2
    for_stack = max(half, room - 1 - len(logical_id))
    for_id = room - 1 - min(len(stack), for_stack)
    head = f"{stack[:for_stack].strip('-')}-{logical_id[: max(for_id, 0)]}".strip("-")
    return head if head and head[0].isalpha() else stack[:1]


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()


def _base36(digest: bytes) -> str:
    number = int.from_bytes(digest, "big")
    characters = []
    for _ in range(TAIL_LENGTH):
        number, rest = divmod(number, 36)
        characters.append(_BASE36[rest])
    return "".join(characters)
