"""What was tried on one resource, and what came of it: the memory that going back and the journal work from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.patience import Trace
from stackhold.errors import StackholdError
from stackhold.model.codec import resource_document
from stackhold.model.journal import LEFTOVER, JournalOperation

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.plan import ResourceChange
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, PhysicalId, TypeName
    from stackhold.model.record import ResourceRecord


class Verb(StrEnum):
    """What was done, once that was decided; the values are the journal's change types but for the last two."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    REPLACE = "REPLACE"
    DELETE = "DELETE"
    RECORD = "RECORD"
    """Only the record changed."""
    NOTHING = "NOTHING"
    """Nothing had to be done after all."""


_NAMED: Final = frozenset({Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.DELETE})


@dataclass(slots=True)
class Attempt:
    """One operation. Written by the thread that carries it out, read when that is over."""

    logical_id: LogicalId
    change: ResourceChange | None
    before: ResourceRecord | None
    verb: Verb = Verb.NOTHING
    after: ResourceRecord | None = None
    """What it made, as far as that is known."""
    name: str = ""
    """The name that a create was sent with."""
    is_own_name: bool = False
    """Whether that name was made by this run, so that nobody else can have it."""
    properties: Props = field(default_factory=dict)
    is_old_gone: bool = False
    """A replacement has deleted the old one already."""
    keeps_old: bool = False
    is_leftover: bool = False
    """A delete of what a replacement, or an earlier run, left behind."""
    lacks_baseline: bool = False
    """What the update changed has no drift baseline yet."""
    trace: Trace = field(default_factory=Trace)
    error: Exception | None = None
    began: int = 0
    """On the boot clock."""
    ended: int = 0

    @property
    def type(self) -> TypeName:
        """The resource's type."""
        if self.change is not None:
            return self.change.type
        assert self.before is not None
        return self.before.type

    @property
    def operation(self) -> str:
        """As events and summaries call it: what was done, else what was planned."""
        if self.verb in _NAMED or self.change is None:
            return self.verb.value.lower()
        return self.change.action.value

    @property
    def physical_id(self) -> PhysicalId | None:
        """The one that the resource has now, as far as that is known."""
        record = self.after or self.before
        return record.physical_id if record else None


def reason_of(error: Exception) -> str:
    """What went wrong and the advice that comes with it, on one line."""
    hint = " ".join(error.hint.split()) if isinstance(error, StackholdError) else ""
    return f"{error}. {hint}" if hint else str(error)


def journal_operation(attempt: Attempt, *, status: str | None = None) -> JournalOperation:
    """The journal's entry for an operation; `status` is None when it was done."""
    kept = attempt.after if attempt.verb is not Verb.DELETE else attempt.before
    stand_ins = (attempt.trace.physical_id, attempt.name, attempt.before.physical_id if attempt.before else "")
    physical_id = kept.physical_id if kept else next((name for name in stand_ins if name), "")
    properties = attempt.after.properties if attempt.after else (attempt.properties or None)
    return JournalOperation(
        logical_id=attempt.logical_id,
        change_type=attempt.verb.value,
        type=attempt.type,
        physical_id=physical_id,  # type: ignore[arg-type]  # a name stands in where no id was answered
        properties=None if attempt.verb is Verb.DELETE else properties,
        provisioned_by=kept.provisioned_by if kept else (attempt.change.route.value if attempt.change else None),
        previous=resource_document(attempt.before) if attempt.before else None,
        status=status,
        extra={LEFTOVER: True} if attempt.is_leftover else {},
    )
