"""The few things that going back is made of: a resource gets its former properties, is created again, or goes.

Shared by a failed run that goes back by itself and by `rollback`, which goes back by the journal. Nothing here
decides, but that what is another's by its tags is never deleted; the record is the caller's to save.
"""

from __future__ import annotations

import dataclasses
import shlex
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.names import REGION_TAG, STACK_TAG
from stackhold.engines.cloudformation.resources import tags
from stackhold.engines.cloudformation.settle import wait_settled
from stackhold.model.events import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.patience import Trace
    from stackhold.engines.cloudformation.resources.handler import Context, Handler
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, TypeName
    from stackhold.model.record import ResourceRecord


def restore(
    bench: Bench,
    logical_id: LogicalId,
    before: ResourceRecord,
    *,
    handler: Handler,
    physical_id: PhysicalId,
    old: Props,
    trace: Trace,
) -> None:
    """Give a resource, which has `old` now, the properties of `before`; waits until it has settled.

    `handler` is the one that has sent `old`: the recorded route may not know what that has set. One that had only been
    found again has no such properties: it stays as it is now, to be brought to what the next deploy asks.
    """
    if before.is_adopted:
        return
    ctx = bench.context(trace)
    want = bench.want(logical_id, handler, dict(before.properties))
    want = dataclasses.replace(want, name=want.name if _has_name(handler, want.properties) else "")
    made = handler.update(ctx, physical_id, old, want)
    if not made.is_settled:
        _wait(bench, handler, ctx, physical_id, before)


def create_again(
    bench: Bench, logical_id: LogicalId, before: ResourceRecord, trace: Trace, *, replacement: int = 0
) -> ResourceRecord:
    """Make a resource that is gone anew, as `before` has it. What it held is lost; its record is the answer."""
    handler, ctx = bench.handler(before), bench.context(trace)
    want = bench.want(logical_id, handler, dict(before.properties), replacement=replacement)
    made = handler.create(ctx, want)
    bench.touched.add(made.physical_id, made.attributes)
    return dataclasses.replace(
        before,
        physical_id=made.physical_id,
        attributes=dict(made.attributes),
        observed=made.observed,
        is_settling=not made.is_settled,
    )


def settled(bench: Bench, record: ResourceRecord) -> ResourceRecord:
    """The same resource once it has settled; as it is when the wait is cut short."""
    handler, ctx = bench.handler(record), bench.context()
    made = wait_settled(
        handler,
        ctx,
        physical_id=record.physical_id,
        properties=dict(record.properties),
        clock=bench.run.clock,
        is_cut=lambda: bench.run.stopping() is not None,
    )
    if made is None:
        return record
    return dataclasses.replace(record, is_settling=False, attributes={**record.attributes, **made.attributes})


def delete(
    bench: Bench,
    record: ResourceRecord,
    trace: Trace | None = None,
    *,
    logical_id: LogicalId,
    sent: Mapping[str, str] | None = None,
) -> str:
    """Delete a resource; one that is gone is no failure. One that is another's stays: whose it is, else empty.

    `sent` are the ownership tags of the create that made it, where that is known.
    """
    whose = owner(bench, record, sent=sent)
    if whose:
        message = f"{record.physical_id} is not deleted: by its tags it is {whose}"
        bench.tell(EventKind.WARNING, logical_id, message)
        return whose
    bench.touched.forget(record.physical_id)
    bench.handler(record).delete(bench.context(trace), record.physical_id, dict(record.properties))
    return ""


def owner(bench: Bench, record: ResourceRecord, *, sent: Mapping[str, str] | None = None) -> str:
    """Whose a resource is by its tags, where its create could have taken over another's: then somebody else can have
    its name. Empty when it is the stack's, and when it carries no ownership tags.

    With `sent` it is another's, too, if another run or another resource of the stack has made it.
    """
    handler = bench.handler(record)
    if not handler.takes_over or not _has_name(handler, dict(record.properties)):
        return ""
    there = handler.tags_there(bench.context(), record.physical_id, dict(record.properties))
    owned, identity = tags.hidden(there), bench.run.identity
    ours = {STACK_TAG: str(identity.stack), REGION_TAG: str(identity.region)} if sent is None else sent
    return "" if all(owned.get(key, value) == value for key, value in ours.items()) else tags.whose(there)


def keeps_name(bench: Bench, record: ResourceRecord) -> bool:
    """Whether a resource has a name that its template gave it, so that no other can be made under that."""
    return _has_name(bench.handler(record), dict(record.properties))


def kept_message(bench: Bench, record: ResourceRecord, *, why: str) -> str:
    """That a resource stays in the cloud without a record, and the ways out where its name is then taken."""
    said = f"as {record.physical_id} ({why}); it is in no record now"
    if not keeps_name(bench, record):
        return f"{said}: delete it by hand once nobody needs it"
    command = (
        f"aws cloudcontrol delete-resource --type-name {record.type} --identifier {shlex.quote(record.physical_id)} "
        f"--region {bench.run.identity.region}"
    )
    return f"{said}, and its name stays taken: give another name in the template, or delete it by hand with: {command}"


def look_command(*, type_name: TypeName, name: str, logical_id: LogicalId, region: Region, run_id: RunId) -> str:
    """The read-only AWS command that looks for a resource whose create was not answered."""
    if name:
        return f"aws cloudcontrol get-resource --type-name {type_name} --identifier {name} --region {region}"
    filters = f"Key=stackhold:run,Values={run_id} Key=stackhold:logical-id,Values={logical_id}"
    return f"aws resourcegroupstaggingapi get-resources --tag-filters {filters} --region {region}"


def _wait(bench: Bench, handler: Handler, ctx: Context, physical_id: PhysicalId, before: ResourceRecord) -> None:
    wait_settled(
        handler,
        ctx,
        physical_id=physical_id,
        properties=dict(before.properties),
        clock=bench.run.clock,
        is_cut=lambda: bench.run.stopping() is not None,
    )


def _has_name(handler: Handler, properties: Props) -> bool:
    return handler.name_rule is not None and bool(properties.get(handler.name_rule.property))
