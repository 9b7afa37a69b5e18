"""Shows a plan before anything is changed, and asks where data would be lost.

Called with the lock held, so what is shown is what will be done. A plan made again because the stack changed is asked
about again. Where nobody can answer, the answer is no, and `refusal` says how to say yes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.cli.confirm import ask
from stackhold.cli.paint import Paint
from stackhold.cli.render_plan import counts_text, plan_document, plan_text, risky
from stackhold.cli.render_rollback import losing, rollback_document, rollback_text
from stackhold.engines.cloudformation.engine import DeployWork, DestroyWork
from stackhold.engines.cloudformation.plan import Action
from stackhold.engines.cloudformation.rollback import RollbackWork
from stackhold.errors import Bug

if TYPE_CHECKING:
    from stackhold.cli.running import Running
    from stackhold.engines.cloudformation.plan import Plan
    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.engine import Work

_PLAIN_ACTIONS = (Action.CREATE, Action.KEEP, Action.WAIT, Action.RECORD)


class _Approval:
    """What one run's plan was, and whether it may go on."""

    def __init__(self, running: Running, identity: RunIdentity) -> None:
        self._running = running
        self._identity = identity
        self.document: JsonMap | None = None
        """The last plan, for `--json`."""
        self.refusal = ""
        """Why the answer was no, when nobody said so."""

    def _show(self, plan: Plan, record: StateRecord | None, *, in_full: bool) -> None:
        identity, output = self._identity, self._running.call.output
        self.document = plan_document(plan, stack=identity.stack, region=identity.region, record=record)
        paint = Paint(self._running.call.surroundings.color_on(output.human))
        if in_full:
            output.say(plan_text(plan, stack=identity.stack, region=identity.region, record=record, paint=paint))
        else:
            output.say(f"{paint('bold', f'{identity.stack} ({identity.region})')}: {counts_text(plan)}")

    def _ask(self, question: str, *, reason: str) -> bool:
        """Ask; where nobody can answer the answer is no, for the reason given."""
        call = self._running.call
        if not call.yes and not call.surroundings.can_ask:
            self.refusal = f"{reason}, and nobody can be asked here"
            return False
        return ask(call.surroundings, question, yes=call.yes, is_over=self._running.is_over)


class DeployApproval(_Approval):
    """Asks when a plan would lose the data of a stateful resource."""

    def __call__(self, work: Work) -> bool:
        """Whether to go on."""
        if not isinstance(work, DeployWork):
            raise Bug(f"a deploy planned {type(work).__name__}")
        plan = work.plan
        in_full = bool(plan.pending_deletes) or any(c.action not in _PLAIN_ACTIONS for c in plan.changes.values())
        self._show(
            plan, work.record, in_full=in_full or plan.parameters_changed or plan.tags_changed or bool(plan.warnings)
        )
        losing = risky(plan)
        if not losing:
            return True
        named = ", ".join(f"{change.logical_id} ({change.action.value})" for change in losing)
        unsure = sum(change.action is Action.MAY_REPLACE for change in losing)
        how = "would be lost" if not unsure else "may be lost" if unsure == len(losing) else "would or may be lost"
        loss = f"the data of {named} {how}"
        return self._ask(f"{loss[0].upper()}{loss[1:]}. Go on?", reason=loss)


class DestroyApproval(_Approval):
    """Asks always."""

    def __call__(self, work: Work) -> bool:
        """Whether to go on."""
        if not isinstance(work, DestroyWork):
            raise Bug(f"a destroy planned {type(work).__name__}")
        self._show(work.plan, work.record, in_full=not self._running.call.yes)
        name = f"{self._identity.stack} ({self._identity.region})"
        return self._ask(f"Destroy {name}?", reason=f"{name} would be destroyed")


class RollbackApproval(_Approval):
    """Asks when a rollback would delete what holds data."""

    def __call__(self, work: Work) -> bool:
        """Whether to go on."""
        if not isinstance(work, RollbackWork):
            raise Bug(f"a rollback planned {type(work).__name__}")
        identity, output = self._identity, self._running.call.output
        self.document = rollback_document(work.plan, stack=identity.stack, region=identity.region)
        paint = Paint(self._running.call.surroundings.color_on(output.human))
        output.say(rollback_text(work.plan, stack=identity.stack, region=identity.region, paint=paint))
        named = losing(work.plan)
        if not named:
            return True
        loss = f"the data of {', '.join(named)} would be lost"
        return self._ask(f"{loss[0].upper()}{loss[1:]}. Go on?", reason=loss)
