"""Creates that AWS answers as if they had made what is there already: whose it is, before, between and after.

Only a name that the template chose can be somebody else's, so only such a create is looked after. What has the name is
read before the first try, before each further one, and once more when AWS has answered: another run may have come in
between. What does not carry the ownership tags that were sent is not ours, and is neither recorded nor deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.resources import tags
from stackhold.errors import ResourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Handler, Want

_SEEN_AFTER_MS: Final = (200, 400, 800, 1_600, 3_000, 5_000)
"""Waits for what was just made, or its tags, to be seen."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One create of a resource whose name may be another's."""

    ctx: Context
    want: Want
    kind: str
    """As the refusal calls it."""
    service: str
    operation: str
    is_chosen: bool
    """Whether the template chose the name."""
    tags_there: Callable[[], Any]
    """All tags of what has the name now; None when nothing has it."""
    code: str = "AlreadyExists"
    overwrites: bool = False
    """Whether the create changes what is there already."""
    keeps_tags: bool = True
    """Whether every server keeps the tags that a create was sent with."""

    def is_there(self) -> bool:
        """Whether something has the name already, and is ours; refuses what is another's."""
        there = self.tags_there() if self.is_chosen else None
        if there is not None and not tags.are_ours(there, self.want):
            raise self._taken(there)
        return there is not None

    def send(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Make the create call, with a look before each try but the first."""
        look = self.is_there if self.is_chosen else None
        return self.ctx.aws.call(self.service, self.operation, params, look=look)

    def confirm(self) -> None:
        """Refuse what AWS has answered with unless this very create made it."""
        if not self.is_chosen:
            return
        there = self._seen()
        if there is None:
            raise ResourceFailed(f"{self.kind} {self.want.name} was made, as AWS has answered, and cannot be seen")
        if tags.are_ours(there, self.want) or not (self.keeps_tags or tags.hidden(there)):
            return
        self.ctx.made_nothing()
        raise self._taken(there, was_sent=True)

    def _seen(self) -> Any:
        """The tags there; where there are none of any owner, only after a while: they may not be seen at once."""
        there = self.tags_there()
        for pause in _SEEN_AFTER_MS if self.keeps_tags or there is None else ():
            if there is not None and tags.hidden(there):
                break
            self.ctx.wait(pause)
            there = self.tags_there()
        return there

    def _taken(self, there: Any, *, was_sent: bool = False) -> Exception:
        return tags.foreign(
            self.kind,
            self.want.name,
            service=self.service,
            operation=self.operation,
            code=self.code,
            there=there,
            was_overwritten=was_sent and self.overwrites,
        )


def is_chosen(handler: Handler, want: Want) -> bool:
    """Whether the template gives the name, so that anybody else could give it, too."""
    return handler.name_rule is not None and bool(want.properties.get(handler.name_rule.property))
