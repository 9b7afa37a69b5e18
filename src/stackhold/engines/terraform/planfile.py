"""A saved plan in short: counts, addresses, and a keyed digest that names exactly one plan without revealing values.

Reads what `show -json` prints, which holds every input value: nothing of that goes into the summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.engines.terraform.diagnostics import StreamSummary


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a plan would do to one resource."""

    address: str
    action: str
    """`create`, `update`, `replace`, `delete`, `import`, `move`, `forget`, `read` or `no-op`."""


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in short. `resources` are those that something happens to, what destroys first."""

    hash: str
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    import_: int = 0
    move: int = 0
    forget: int = 0
    output_changes: int = 0
    resources: tuple[PlannedChange, ...] = ()

    @property
    def is_destructive(self) -> bool:
        """Whether anything that exists would be destroyed."""
        return self.delete > 0 or self.replace > 0

    @property
    def has_changes(self) -> bool:
        """Whether applying it would do anything."""
        counts = (self.create, self.update, self.replace, self.delete, self.import_, self.move, self.forget)
        return any(counts) or self.output_changes > 0


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """What changed behind the state's back, or what it takes to set it right again."""

    detected: bool = False
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    resources: tuple[PlannedChange, ...] = ()


def summarize(document: bytes, *, key: bytes) -> PlanSummary:
    """The plan that `show -json` printed. Raises InputError for anything else, or a format that is not 1.x."""
    raise NotImplementedError


def drift_summary(refresh: StreamSummary, plan: PlanSummary | None) -> DriftSummary:
    """What a drift operation found: its refresh, and the plan after it (None when that found nothing to do)."""
    raise NotImplementedError
