"""What one run will do: the desired resources against the recorded ones, as frozen instructions.

Resources are looked at after all that they depend on, so that each sees which of its references will still be what
the record says. What a replacement or creation makes is unknown until then; a create-only property that depends on
such a value may replace. Nothing here calls AWS but through `attribute`, for recorded resources only.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation import adoption, refusals
from stackhold.engines.cloudformation.coerce import PropertyError
from stackhold.engines.cloudformation.diff import diff_properties
from stackhold.engines.cloudformation.graph import topological
from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.plan import Action, Effect, Plan, PropertyChange, ResourceChange, Route
from stackhold.engines.cloudformation.route import Native, is_stateful, route_for, route_of
from stackhold.engines.cloudformation.schema import schema_for
from stackhold.engines.cloudformation.sight import Attribute, Sight
from stackhold.engines.cloudformation.taken_names import refused_names
from stackhold.engines.cloudformation.taking_back import taken_back
from stackhold.engines.cloudformation.template.resolve import as_text, references, resolve
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.engines.cloudformation.wanted import wanted_properties
from stackhold.errors import InputError, TemplateError
from stackhold.model.record import DropPendingDelete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stackhold.engines.cloudformation.template.desired import DesiredResource, DesiredStack, Edges
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId
    from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord

    IsGone = Callable[[LogicalId, ResourceRecord], bool]

_GONE = "it is recorded and gone from the cloud: it is made anew"


def plan_deploy(
    desired: DesiredStack,
    record: StateRecord | None,
    *,
    needs: Edges,
    attribute: Attribute,
    native: Native,
    allow_replace: frozenset[LogicalId] = frozenset(),
    stack_tags: Mapping[str, str] | None = None,
    is_gone: IsGone = lambda logical_id, recorded: False,
) -> Plan:
    """What makes the cloud as the template asks. Raises one `InputError` for all that is wrong.

    `attribute` reads an attribute that the record does not have. `allow_replace` names the resources whose old one
    may be deleted before the new one is made; of those that nothing else would replace, `is_gone` asks whether they are
    gone from the cloud, to be made anew.
    """
    planner = _Planner(desired, record, needs, attribute, native, allow_replace, stack_tags or {}, is_gone)
    return planner.plan()


def plan_destroy(record: StateRecord, *, native: Native | None = None) -> Plan:
    """What takes a stack away, by the policies in its record."""
    find = native or _from_record
    changes = {
        logical_id: _removal(logical_id, resource, native=find) for logical_id, resource in record.resources.items()
    }
    return Plan(
        changes=changes,
        needs={},
        old_needs=_old_needs(record),
        pending_deletes=_pending(record)[0],
        warnings=_pending(record)[1],
    )


def reconsider(
    change: ResourceChange, properties: Props, *, native: Native, stack_tags: Mapping[str, str] | None = None
) -> ResourceChange:
    """A planned update or replacement once every value is known: it may have become less, or definite.

    What only may replace by its schema is tried in place.
    """
    recorded, desired = change.recorded, change.desired
    if recorded is None or desired is None or recorded.type != desired.type or change.is_gone:
        return change
    handler = native(change.type) if change.route is Route.NATIVE else None
    old = adoption.compared(recorded, properties)
    changes = diff_properties(change.type, old, properties, handler=handler, recorded=recorded)
    changes = adoption.judged(changes, recorded, desired, stack_tags or {})
    effects = {one.effect for one in changes}
    if Effect.REPLACE in effects:
        action = Action.REPLACE
    elif effects:
        action = Action.UPDATE
    else:
        action = adoption.at_least_updated(Action.WAIT if recorded.is_settling else Action.KEEP, recorded)
    return dataclasses.replace(change, action=action, changes=changes)


class _Planner:
    """One plan in the making."""

    def __init__(
        self,
        desired: DesiredStack,
        record: StateRecord | None,
        needs: Edges,
        attribute: Attribute,
        native: Native,
        allow_replace: frozenset[LogicalId],
        stack_tags: Mapping[str, str],
        is_gone: IsGone,
    ) -> None:
        self._is_gone = is_gone
        self._desired = desired
        self._record = record
        self._recorded: Mapping[LogicalId, ResourceRecord] = record.resources if record else {}
        self._needs = {name: needs.get(name, frozenset()) & desired.resources.keys() for name in desired.resources}
        self._native = native
        self._allow_replace = allow_replace
        self._stack_tags = stack_tags
        self._changes: dict[LogicalId, ResourceChange] = {}
        self._resolved: dict[LogicalId, Props] = {}
        self._sight = Sight(self._changes, attribute=attribute, native=native)
        self._problems: list[InputError] = []

    def plan(self) -> Plan:
        """Every resource, then the outputs."""
        self._check_allowed()
        for logical_id in topological(self._needs):
            self._try_resource(self._desired.resources[logical_id])
        for logical_id, resource in self._recorded.items():
            if logical_id not in self._desired.resources:
                self._try_removal(logical_id, resource)
        self._raise_problems()
        pending, warnings = _pending(self._record)
        outputs = {name: self._output(name) for name in self._desired.outputs}
        exports, exports_known = self._exports(outputs)
        plan = Plan(
            changes=self._changes,
            needs=self._needs,
            old_needs=_old_needs(self._record),
            pending_deletes=pending,
            outputs=self._desired.outputs,
            parameters=self._desired.parameters,
            output_values=outputs,
            exports=exports,
            exports_known=exports_known,
            outputs_changed=outputs != dict(self._record.outputs if self._record else {}),
            parameters_changed=self._parameters_changed(),
            warnings=(*self._desired.warnings, *warnings, *self._in_vain()),
            resolved=self._resolved,
            stack_tags=self._stack_tags,
        )
        self._refuse_taken_names(plan)
        return plan

    def _refuse_taken_names(self, plan: Plan) -> None:
        """Names that are not free when they are wanted. An old resource that is taken back has its name by right."""
        back = taken_back(plan, self._record, native=self._native) if self._record is not None else ()
        stays = {(one.logical_id, one.physical_id) for one in back if isinstance(one, DropPendingDelete)}
        waiting = [one for one in plan.pending_deletes if (one.logical_id, one.resource.physical_id) not in stays]
        refused = refused_names(
            self._changes,
            self._resolved,
            waiting,
            native=self._native,
            is_gone=lambda one: self._is_gone(one.logical_id, one.resource),
        )
        for logical_id, error in refused:
            self._problems.append(_placed(error, self._desired.file, self._desired.resources[logical_id]))
        self._raise_problems()

    def _check_allowed(self) -> None:
        unknown = sorted(self._allow_replace - self._desired.resources.keys())
        if unknown:
            raise InputError(f"--replace names {', '.join(unknown)}, which the template does not have")

    def _try_resource(self, desired: DesiredResource) -> None:
        """Plan one; a problem is kept, so that all of them can be said at once."""
        try:
            self._changes[desired.logical_id] = self._plan_one(desired)
        except InputError as error:
            self._problems.append(_placed(error, self._desired.file, desired))

    def _try_removal(self, logical_id: LogicalId, resource: ResourceRecord) -> None:
        try:
            self._changes[logical_id] = _removal(logical_id, resource, native=self._native)
        except InputError as error:
            self._problems.append(error)

    def _raise_problems(self) -> None:
        if len(self._problems) == 1:
            raise self._problems[0]
        if self._problems:
            hints = dict.fromkeys(problem.hint for problem in self._problems if problem.hint)
            raise InputError("; ".join(problem.message for problem in self._problems), hint="\n".join(hints))

    def _plan_one(self, desired: DesiredResource) -> ResourceChange:
        logical_id, recorded = desired.logical_id, self._recorded.get(desired.logical_id)
        properties = wanted_properties(
            desired.type, logical_id, desired.properties, self._sight.lookup, stack_tags=self._stack_tags
        )
        self._resolved[logical_id] = properties
        route = route_for(logical_id, desired.type, properties, native=self._native, recorded=recorded)
        handler = self._native(desired.type) if route is Route.NATIVE else None
        blank = ResourceChange(
            logical_id,
            desired.type,
            Action.CREATE,
            route,
            desired=desired,
            recorded=recorded,
            is_stateful=recorded is not None and is_stateful(recorded.type, route, native=self._native),
        )
        if recorded is None:
            refusals.refuse_reserved_name(logical_id, desired.type, properties, native=self._native)
            return blank
        if recorded.type != desired.type:
            return self._other_type(blank, desired, recorded)
        old = adoption.compared(recorded, properties)
        found = diff_properties(desired.type, old, properties, handler=handler, recorded=recorded)
        found = adoption.judged(found, recorded, desired, self._stack_tags)
        changes = tuple(dataclasses.replace(one, cause=self._cause(desired, one)) for one in found)
        action = self._action(changes, desired, recorded, properties)
        if recorded.is_adopted:
            action = adoption.at_least_updated(action, recorded)
            blank = dataclasses.replace(blank, warnings=(*blank.warnings, adoption.FOUND_AGAIN))
        if self._is_to_be_made_anew(action, recorded, logical_id):
            anew = dataclasses.replace(blank, action=Action.REPLACE, changes=changes, is_stateful=False)
            return dataclasses.replace(anew, is_gone=True, old_first=True, warnings=(_GONE,))
        return self._finish(dataclasses.replace(blank, action=action, changes=changes), desired, recorded, properties)

    def _is_to_be_made_anew(self, action: Action, recorded: ResourceRecord, logical_id: LogicalId) -> bool:
        """Whether it was named with `--replace` and is not there any more."""
        is_asked = logical_id in self._allow_replace and action not in {Action.REPLACE, Action.MAY_REPLACE}
        return is_asked and self._is_gone(logical_id, recorded)

    def _in_vain(self) -> tuple[str, ...]:
        """The resources of `--replace` that nothing replaces. Where nothing else is to be done, that is an error."""
        made = {Action.CREATE, Action.REPLACE, Action.MAY_REPLACE}
        names = sorted(name for name in self._allow_replace if self._changes[name].action not in made)
        if not names:
            return ()
        said = f"--replace {', '.join(names)}: no change of the template replaces {'it' if len(names) == 1 else 'them'}"
        is_idle = all(change.action is Action.KEEP for change in self._changes.values())
        if is_idle and not (self._record and self._record.pending_deletes):
            raise InputError(
                f"{said}, and {'it is' if len(names) == 1 else 'they are'} there as recorded",
                hint="--replace lets a change that needs it replace a resource under the same name, and makes one anew "
                "that is gone from the cloud. To have one made anew that is there, give it another logical id.",
            )
        return (said,)

    def _action(
        self,
        changes: tuple[PropertyChange, ...],
        desired: DesiredResource,
        recorded: ResourceRecord,
        properties: Props,
    ) -> Action:
        effects = {change.effect for change in changes}
        if Effect.REPLACE in effects:
            return Action.REPLACE
        if Effect.MAY_REPLACE in effects:
            return Action.MAY_REPLACE
        if effects:
            return Action.UPDATE
        if recorded.is_settling:
            return Action.WAIT
        is_kept = recorded.properties.keys() == properties.keys() and not self._differs_in_record(desired, recorded)
        return Action.KEEP if is_kept else Action.RECORD

    def _differs_in_record(self, desired: DesiredResource, recorded: ResourceRecord) -> bool:
        """Whether what only the record holds is another: policies and dependencies. Absent means the usual."""
        delete = refusals.effective_policy(desired.type, desired.deletion_policy, recorded.properties)
        replace = refusals.effective_policy(desired.type, desired.update_replace_policy, recorded.properties)
        return (
            delete != refusals.effective_policy(desired.type, recorded.deletion_policy, recorded.properties)
            or replace != refusals.effective_policy(desired.type, recorded.update_replace_policy, recorded.properties)
            or (
                recorded.dependencies is not None
                and frozenset(recorded.dependencies) != self._needs[desired.logical_id]
            )
        )

    def _finish(
        self, change: ResourceChange, desired: DesiredResource, recorded: ResourceRecord, properties: Props
    ) -> ResourceChange:
        """A replacement with its order and the fate of the old one."""
        if change.action not in (Action.REPLACE, Action.MAY_REPLACE):
            return change
        route_of(change.logical_id, recorded, native=self._native)
        refusals.refuse_reserved_name(change.logical_id, desired.type, properties, native=self._native)
        policy = refusals.effective_policy(desired.type, desired.update_replace_policy, recorded.properties)
        refusals.refuse_snapshot(change.logical_id, desired.type, policy, what="replaced")
        schema = schema_for(desired.type)
        old_first = schema is not None and schema.delete_first
        if not old_first and (name := self._kept_name(change, recorded, properties)):
            old_first = desired.logical_id in self._allow_replace
            if change.action is Action.REPLACE and not old_first:
                causes = tuple(one.path for one in change.changes if one.effect is Effect.REPLACE)
                refusals.refuse_same_name(change.logical_id, change.type, name, causes)
        return dataclasses.replace(change, old_first=old_first, keeps_old=refusals.policy_that_keeps(policy))

    def _kept_name(self, change: ResourceChange, recorded: ResourceRecord, properties: Props) -> str | None:
        """The explicit name, if old and new have the same: they cannot both be there."""
        name = refusals.explicit_name(change.type, properties, native=self._native)
        before = refusals.explicit_name(change.type, recorded.properties, native=self._native)
        return name if name == before else None

    def _other_type(self, blank: ResourceChange, desired: DesiredResource, recorded: ResourceRecord) -> ResourceChange:
        """Another type under one id: only on request, and then the old one is deleted like any replaced one."""
        if desired.logical_id not in self._allow_replace:
            refusals.refuse_other_type(desired, recorded)
        old_route = route_of(desired.logical_id, recorded, native=self._native)
        policy = refusals.effective_policy(recorded.type, desired.update_replace_policy, recorded.properties)
        refusals.refuse_snapshot(desired.logical_id, recorded.type, policy, what="replaced")
        return dataclasses.replace(
            blank,
            action=Action.REPLACE,
            changes=(PropertyChange("Type", recorded.type, desired.type, Effect.REPLACE),),
            keeps_old=refusals.policy_that_keeps(policy),
            is_stateful=is_stateful(recorded.type, old_route, native=self._native),
        )

    def _cause(self, desired: DesiredResource, change: PropertyChange) -> LogicalId | None:
        """The resource that makes a value unknown."""
        if not has_unknown(change.new):
            return None
        top = change.path.split(".", 1)[0]
        named = references(desired.properties.get(top))
        unknown = sorted(one for one, attribute in named if self._sight.lookup(one, attribute) is UNKNOWN)
        return unknown[0] if unknown else None

    def _exports(self, outputs: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The values of the exports whose names are known, and whether all that there is to know is."""
        found: dict[str, Any] = {}
        is_known = True
        for name, output in self._desired.outputs.items():
            export = None if output.export is None else self._text(output.export, f"the export name of output {name}")
            if export is UNKNOWN:
                is_known = False
            elif export is not None:
                if export in found or not export.strip():
                    what = "is another output's too" if export in found else "is empty"
                    raise TemplateError(f"the export name {export!r} of output {name} {what}", file=self._desired.file)
                found[export] = outputs[name]
        return found, is_known and UNKNOWN not in found.values()

    def _output(self, name: str) -> Any:
        return self._text(self._desired.outputs[name].value, f"output {name}")

    def _text(self, value: Any, what: str) -> Any:
        """A text, unknown as a whole when a part is; one that cannot be is refused before the first call."""
        try:
            value = resolve(value, self._sight.lookup)
            return UNKNOWN if has_unknown(value) else as_text(value)
        except TemplateError as error:
            raise TemplateError(f"{what}: {error.reason}", file=self._desired.file) from error

    def _parameters_changed(self) -> bool:
        """A record that does not tell its parameters (cdkd's) has not changed them."""
        recorded = self._record.parameters if self._record else None
        return recorded is not None and dict(recorded) != dict(self._desired.parameters)


def _removal(logical_id: LogicalId, resource: ResourceRecord, *, native: Native) -> ResourceChange:
    """What happens to a recorded resource that nobody wants any more, by the policy in its record."""
    policy = refusals.effective_policy(resource.type, resource.deletion_policy, resource.properties)
    keeps = refusals.policy_that_keeps(policy)
    if keeps:
        recorded_route = Route.CLOUD_CONTROL if resource.provisioned_by == Route.CLOUD_CONTROL else Route.NATIVE
        return ResourceChange(
            logical_id, resource.type, Action.RETAIN, recorded_route, recorded=resource, keeps_old=keeps
        )
    refusals.refuse_snapshot(logical_id, resource.type, policy, what="deleted")
    route = route_of(logical_id, resource, native=native)
    return ResourceChange(
        logical_id,
        resource.type,
        Action.DELETE,
        route,
        recorded=resource,
        is_stateful=is_stateful(resource.type, route, native=native),
    )


def _from_record(_: object) -> None:
    """No native handlers: for a plan made without them."""


def _old_needs(record: StateRecord | None) -> dict[LogicalId, frozenset[LogicalId]]:
    """The recorded dependencies, those of what still waits for its deletion included."""
    found: dict[LogicalId, frozenset[LogicalId]] = {}
    if record is None:
        return found
    entries: Iterable[tuple[LogicalId, ResourceRecord]] = [
        *record.resources.items(),
        *((pending.logical_id, pending.resource) for pending in record.pending_deletes),
    ]
    for logical_id, resource in entries:
        found[logical_id] = found.get(logical_id, frozenset()) | frozenset(resource.dependencies or ())
    return found


def _pending(record: StateRecord | None) -> tuple[tuple[PendingDelete, ...], tuple[str, ...]]:
    """What earlier runs left to delete; never what is recorded as a living resource at the same time."""
    if record is None:
        return (), ()
    living = {(resource.type, resource.physical_id) for resource in record.resources.values()}
    kept, warnings = [], []
    for pending in record.pending_deletes:
        if (pending.resource.type, pending.resource.physical_id) in living:
            warnings.append(
                f"{pending.logical_id}: {pending.resource.physical_id} is recorded both as to be deleted and as a "
                "resource of the stack; it is left alone"
            )
        else:
            kept.append(pending)
    return tuple(kept), tuple(warnings)


def _placed(error: InputError, file: str, desired: DesiredResource) -> InputError:
    """An error with the place in the template."""
    if isinstance(error, TemplateError):
        if error.line or error.logical_id:
            return error
        return TemplateError(error.reason, file=file, line=desired.line, logical_id=desired.logical_id, hint=error.hint)
    if not file and not desired.line:
        return error
    wrong = error.property if isinstance(error, PropertyError) else ""
    line = desired.property_lines.get(wrong, desired.line)
    placed = TemplateError(error.message, file=file, line=line, hint=error.hint)
    placed.logical_id = desired.logical_id
    return placed
