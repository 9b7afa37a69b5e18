"""Makes a former state the state again inside the store, for modules that declare no backend. No runtime is needed.

A restored state gets a serial above every one before, so that no plan that was saved from an older one applies to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.engines.terraform.state_facts import renumbered
from stackhold.engines.terraform.state_keeper import StateKeeper
from stackhold.errors import Bug
from stackhold.model.exit_codes import ExitCode
from stackhold.model.run import Outcome
from stackhold.ports.engine import WorkResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.record import StateRecord
    from stackhold.model.run import Intent, RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.engine import Run
    from stackhold.ports.state_versions import StateVersions


@dataclass(frozen=True, slots=True)
class RestoreEngine:
    """Restores one version of the state, or the content of a file."""

    versions: StateVersions
    sequence: int | None = None
    content: bytes | None = None

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> RestoreWork:
        """Nothing to decide."""
        return RestoreWork(self, record)


@dataclass(frozen=True, slots=True)
class RestoreWork:
    """The restore of one state."""

    engine: RestoreEngine
    record: StateRecord | None

    @property
    def is_empty(self) -> bool:
        """It is asked for, so it is done."""
        return False

    @property
    def intents(self) -> Sequence[Intent]:
        """A version that was written and is in no record is found by its number."""
        return ()

    @property
    def steps(self) -> Sequence[JsonMap]:
        """In short."""
        return ({"operation": "restore", "version": self.engine.sequence},)

    def perform(self, run: Run) -> WorkResult:
        """Do it."""
        engine = self.engine
        keeper = StateKeeper(engine.versions, self.record, run)
        if engine.sequence is not None:
            keeper.restore(engine.sequence)
        elif engine.content is not None:
            keeper.put(renumbered(engine.content, serial=keeper.highest_serial() + 1))
        else:
            raise Bug("a restore of nothing")
        pointer = keeper.pointer
        assert pointer is not None
        return WorkResult(
            Outcome.SUCCEEDED, ExitCode.DONE, summary={"version": pointer.sequence, "serial": pointer.serial}
        )
