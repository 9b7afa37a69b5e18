"""EventBridge rules with their targets.

PutRule overwrites whatever rule has the name, so a name that the template chose is looked at before and after it; a
generated one can only be ours. Targets are put and removed in calls that answer success and list what failed, which
is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import claims, documents, finding, tags
from stackhold.engines.cloudformation.resources.events_targets import from_api, to_api
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "ResourceNotFoundException"
_TARGETS_PER_RULE: Final = 5
_RULE: Final = ("Description", "RoleArn", "ScheduleExpression", "State")
_DEFAULT_BUS: Final = "default"


class Rule(Handler):
    """AWS::Events::Rule. The physical id is its ARN; `Ref` gives `name`, or `bus|name` on another bus."""

    type: ClassVar[TypeName] = TypeName("AWS::Events::Rule")
    properties: ClassVar[frozenset[str]] = frozenset(
        {*_RULE, "EventBusName", "EventPattern", "Name", "Tags", "Targets"}
    )
    name_rule: ClassVar[NameRule | None] = NameRule(property="Name", limit=64)
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    takes_over: ClassVar[bool] = True
    where: ClassVar[tuple[str, ...]] = ("EventBusName",)
    defaults: ClassVar[Mapping[str, Any]] = {
        "Description": "",
        "EventBusName": _DEFAULT_BUS,
        "RoleArn": "",
        "State": "ENABLED",
        "Tags": [],
        "Targets": [],
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """PutRule with the tags, which an existing rule would not take, then its targets."""
        properties = want.properties
        bus = properties.get("EventBusName") or ""
        claim = claims.Claim(
            ctx,
            want,
            kind="rule",
            service="events",
            operation="PutRule",
            is_chosen=claims.is_chosen(self, want),
            tags_there=lambda: _tags_of_name(ctx, want.name, bus),
            code="ResourceAlreadyExistsException",
            overwrites=True,
        )
        claim.is_there()
        params = {**_rule_params(want.name, bus, properties), "Tags": tags.as_list(tags.for_create(want))}
        arn = claim.send(params)["RuleArn"]
        claim.confirm()
        ctx.note(PhysicalId(arn))
        _put_targets(ctx, _on(want.name, bus), properties.get("Targets") or ())
        observed: dict[str, Any] = {
            **{name: self.defaults[name] for name in ("Description", "EventBusName", "RoleArn", "State")},
            **{name: value for name, value in properties.items() if name in self.properties},
            "Name": want.name,
            "Targets": list(properties.get("Targets") or ()),
            "Tags": tags.visible_list(tags.of_template(want)),
        }
        if "EventPattern" in observed:
            observed["EventPattern"] = documents.as_data(observed["EventPattern"])
        return Made(PhysicalId(arn), _attributes(arn, want.name), observed=observed)

    def tags_there(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Any:
        """Two calls: the tags of a rule that is gone may be listed for a while."""
        return _tags_of_name(ctx, *_parse(physical_id, properties))

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The rule of that name on its bus."""
        try:
            arn = ctx.aws.call(
                "events", "DescribeRule", {"Name": lost.name, **_bus(lost.place.get("EventBusName") or "")}
            )["Arn"]
            return finding.named(lost, arn, _tags(ctx, arn) or {})
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The rule, its targets and its tags: a call each."""
        name, bus = _parse(physical_id, properties)
        try:
            rule = ctx.aws.call("events", "DescribeRule", {"Name": name, **_bus(bus)})
            targets = _targets(ctx, name, bus)
            there = _tags(ctx, rule["Arn"])
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise
        seen: dict[str, Any] = {
            "Name": rule["Name"],
            "Description": rule.get("Description") or "",
            "State": rule.get("State") or "ENABLED",
            "RoleArn": rule.get("RoleArn") or "",
            "EventBusName": _bus_as_declared(rule.get("EventBusName") or _DEFAULT_BUS, properties),
            "Targets": [from_api(target) for target in targets],
            "Tags": tags.visible_list(there),
        }
        if rule.get("ScheduleExpression"):
            seen["ScheduleExpression"] = rule["ScheduleExpression"]
        if rule.get("EventPattern"):
            seen["EventPattern"] = documents.as_data(rule["EventPattern"])
        return Seen(seen, _attributes(rule["Arn"], rule["Name"]))

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """The whole rule anew when any part differs, targets one by one, tags by their own calls."""
        name, bus = _parse(physical_id, old)
        new = want.properties
        rule = _rule_params(name, bus, new)
        if _rule_params(name, bus, old) != rule:
            if old.get("Description"):
                rule.setdefault("Description", "")
            ctx.aws.call("events", "PutRule", rule)
        before = {target["Id"]: target for target in old.get("Targets") or ()}
        after = {target["Id"]: target for target in new.get("Targets") or ()}
        gone = [key for key in before if key not in after]
        changed = [target for key, target in after.items() if before.get(key) != target]
        is_full = len(before.keys() | after.keys()) > _TARGETS_PER_RULE
        if is_full:
            _remove_targets(ctx, _on(name, bus), gone)
        _put_targets(ctx, _on(name, bus), changed)
        if not is_full:
            _remove_targets(ctx, _on(name, bus), gone)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if change.put:
            wanted = {"ResourceARN": physical_id, "Tags": tags.as_list(change.put)}
            ctx.aws.call("events", "TagResource", wanted)
        if change.remove:
            ctx.aws.call("events", "UntagResource", {"ResourceARN": physical_id, "TagKeys": list(change.remove)})
        return Made(physical_id, _attributes(physical_id, name))

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """Another bus is another rule; the same bus written otherwise is not."""
        if "EventBusName" not in changed:
            return None
        return _bus_name(old.get("EventBusName")) != _bus_name(new.get("EventBusName"))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Targets first: the recorded ones, and when AWS says that there are more, those too."""
        name, bus = _parse(physical_id, properties)
        rule = {"Name": name, **_bus(bus)}
        try:
            _remove_targets(ctx, _on(name, bus), [target["Id"] for target in properties.get("Targets") or ()])
            try:
                ctx.aws.call("events", "DeleteRule", rule)
            except AwsError as error:
                if error.code != "ValidationException":
                    raise
                left = [target["Id"] for target in _targets(ctx, name, bus)]
                if not left:
                    raise
                _remove_targets(ctx, _on(name, bus), left)
                ctx.aws.call("events", "DeleteRule", rule)
        except AwsError as error:
            if error.code != _GONE:
                raise

    def ref(self, physical_id: PhysicalId, properties: Props, attributes: Mapping[str, Any]) -> Any:
        """The rule's name, after its bus where that is not the default one."""
        name, bus = _parse(physical_id, properties)
        return f"{bus}|{name}" if bus else name


def _parse(arn: str, properties: Mapping[str, Any]) -> tuple[str, str]:
    """Name and bus of a rule, the bus empty for the default one. Takes `name` and `bus|name` as well as an ARN."""
    if arn.startswith("arn:"):
        bus, _, name = arn.split(":rule/", 1)[1].rpartition("/")
    else:
        bus, _, name = arn.rpartition("|")
        bus = bus or _bus_name(properties.get("EventBusName"))
    return name, "" if bus == _DEFAULT_BUS else bus


def _bus(bus: str) -> dict[str, str]:
    return {"EventBusName": bus} if bus else {}


def _on(name: str, bus: str) -> dict[str, str]:
    return {"Rule": name, **_bus(bus)}


def _bus_name(bus: str | None) -> str:
    """Without the ARN around it."""
    return (bus or _DEFAULT_BUS).rpartition("event-bus/")[2]


def _bus_as_declared(seen: str, properties: Mapping[str, Any]) -> str:
    declared = properties.get("EventBusName")
    return str(declared) if declared and _bus_name(declared) == _bus_name(seen) else seen


def _rule_params(name: str, bus: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """PutRule replaces all of a rule, so that what is left out is gone."""
    params: dict[str, Any] = {"Name": name, **_bus(bus), "State": "ENABLED"}
    params |= {key: properties[key] for key in _RULE if properties.get(key)}
    if properties.get("EventPattern"):
        params["EventPattern"] = documents.as_text(properties["EventPattern"])
    return params


def _put_targets(ctx: Context, rule: Mapping[str, Any], targets: Sequence[Mapping[str, Any]]) -> None:
    if targets:
        wanted = {**rule, "Targets": [to_api(target) for target in targets]}
        _raise_failed("PutTargets", ctx.aws.call("events", "PutTargets", wanted))


def _remove_targets(ctx: Context, rule: Mapping[str, Any], ids: Sequence[str]) -> None:
    if ids:
        _raise_failed("RemoveTargets", ctx.aws.call("events", "RemoveTargets", {**rule, "Ids": list(ids)}))


def _raise_failed(operation: str, answer: Mapping[str, Any]) -> None:
    """Both calls succeed even when entries fail."""
    if not answer.get("FailedEntryCount"):
        return
    first = (answer.get("FailedEntries") or [{}])[0]
    raise AwsError(
        service="events",
        operation=operation,
        code=first.get("ErrorCode") or "FailedEntry",
        reason=f"target {first.get('TargetId') or '(unnamed)'}: {first.get('ErrorMessage') or 'no reason given'}",
    )


def _targets(ctx: Context, name: str, bus: str) -> list[dict[str, Any]]:
    return [
        target
        for page in ctx.aws.pages("events", "ListTargetsByRule", _on(name, bus))
        for target in page.get("Targets") or ()
    ]


def _tags(ctx: Context, arn: str) -> Any:
    return ctx.aws.call("events", "ListTagsForResource", {"ResourceARN": arn}).get("Tags")


def _tags_of_name(ctx: Context, name: str, bus: str) -> Any:
    """All tags of the rule of that name on its bus; None when there is none."""
    try:
        return _tags(ctx, ctx.aws.call("events", "DescribeRule", {"Name": name, **_bus(bus)})["Arn"]) or []
    except AwsError as error:
        if error.code == _GONE:
            return None
        raise


def _attributes(arn: str, name: str) -> dict[str, Any]:
    return {"Arn": str(arn), "RuleName": name}
