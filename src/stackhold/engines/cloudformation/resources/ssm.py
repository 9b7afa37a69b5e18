"""SSM parameters (`String` and `StringList`; CloudFormation makes no `SecureString`).

A create never overwrites and carries the tags; an update overwrites and must not carry tags. Values are read ten
at a time, the rest of a parameter fifty at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import finding, tags
from stackhold.engines.cloudformation.resources.documents import as_text
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.engines.cloudformation.resources.shapes import differing, document
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_VALUES_AT_ONCE: Final = 10
_DESCRIPTIONS_AT_ONCE: Final = 50
_SENT: Final = frozenset({"AllowedPattern", "DataType", "Description", "Policies", "Tier", "Type", "Value"})
_NO_POLICIES: Final = "[{}]"


class Parameter(Handler):
    """`AWS::SSM::Parameter`."""

    type: ClassVar[TypeName] = TypeName("AWS::SSM::Parameter")
    properties: ClassVar[frozenset[str]] = _SENT | {"Name", "Tags"}
    name_rule: ClassVar[NameRule | None] = NameRule(
        property="Name", limit=512, reserved=("aws", "ssm", "/aws/", "/ssm/")
    )
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    defaults: ClassVar[Mapping[str, Any]] = {
        "AllowedPattern": "",
        "DataType": "text",
        "Description": "",
        "Policies": "",
        "Tags": {},
        "Tier": "Standard",
    }
    volatile_attributes: ClassVar[frozenset[str]] = frozenset({"Type", "Value"})

    def create(self, ctx: Context, want: Want) -> Made:
        """One call, which fails when the parameter exists. What it made is what was sent."""
        params = {
            "Name": want.name,
            "Overwrite": False,
            "Tags": tags.as_list(tags.for_create(want)),
            **_sent(want.properties),
        }
        try:
            answer = ctx.aws.call("ssm", "PutParameter", params)
        except AwsError as refused:
            if refused.code != "ParameterAlreadyExists":
                raise
            there = _tags_of(ctx, want.name)
            if not tags.are_ours(there, want):
                raise tags.foreign("parameter", want.name, service="ssm", operation="PutParameter") from refused
            ctx.note(PhysicalId(want.name))
            return self.update(ctx, PhysicalId(want.name), {}, want)
        observed: Props = {
            **self.defaults,
            **want.properties,
            "Name": want.name,
            "Tags": tags.visible(tags.of_template(want)),
        }
        if answer.get("Tier"):
            observed["Tier"] = answer["Tier"]
        return Made(PhysicalId(want.name), _attributes(want.properties), observed=observed)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """Value, description, and tags when they are declared."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """A call for ten values, one for fifty descriptions, one each for declared tags."""
        found: dict[str, dict[str, Any]] = {}
        names = sorted(wanted)
        for some in _batches(names, _VALUES_AT_ONCE):
            for value in ctx.aws.call("ssm", "GetParameters", {"Names": some}).get("Parameters", []):
                found[value["Name"]] = {name: value[name] for name in ("Name", "Type", "Value")} | {
                    "DataType": value.get("DataType") or "text"
                }
        for some in _batches(sorted(found), _DESCRIPTIONS_AT_ONCE):
            for described in _descriptions(ctx, some):
                if described["Name"] in found:
                    found[described["Name"]].update(_described(described))
        seen: dict[PhysicalId, Seen] = {}
        for physical_id, properties in wanted.items():
            shown = found.get(physical_id)
            if shown is None:
                continue
            if "Tags" in properties:
                shown["Tags"] = tags.visible(_tags_of(ctx, physical_id))
            seen[physical_id] = Seen(_as_written(shown, properties), _attributes(shown))
        return seen

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call that overwrites, resetting what was removed; others for tags."""
        new = want.properties
        names = differing(old, new, _SENT)
        if names:
            reset = {name: self.defaults[name] for name in names if new.get(name) is None}
            params = {"Name": physical_id, "Overwrite": True, **_sent({**reset, **new})}
            ctx.aws.call("ssm", "PutParameter", params)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        whose = {"ResourceType": "Parameter", "ResourceId": physical_id}
        if change.put:
            ctx.aws.call("ssm", "AddTagsToResource", {**whose, "Tags": tags.as_list(change.put)})
        if change.remove:
            ctx.aws.call("ssm", "RemoveTagsFromResource", {**whose, "TagKeys": list(change.remove)})
        return Made(physical_id, _attributes(new))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call."""
        try:
            ctx.aws.call("ssm", "DeleteParameter", {"Name": physical_id})
        except AwsError as refused:
            if refused.code != "ParameterNotFound":
                raise

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The parameter of that name."""
        if not _value_of(ctx, lost.name):
            return None
        return finding.named(lost, lost.name, _tags_of(ctx, lost.name))


def _value_of(ctx: Context, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ctx.aws.call("ssm", "GetParameters", {"Names": [name]}).get("Parameters", [])
    return found


def _sent(properties: Mapping[str, Any]) -> dict[str, Any]:
    sent = {name: properties[name] for name in sorted(_SENT) if properties.get(name) is not None}
    if "Policies" in sent:
        sent["Policies"] = as_text(sent["Policies"]) or _NO_POLICIES
    return sent


def _attributes(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"Type": properties.get("Type"), "Value": properties.get("Value")}


def _described(described: Mapping[str, Any]) -> dict[str, Any]:
    policies = [document(entry.get("PolicyText", "")) for entry in described.get("Policies") or []]
    return {
        "AllowedPattern": described.get("AllowedPattern", ""),
        "Description": described.get("Description", ""),
        "Policies": [policy for policy in policies if policy] or "",
        "Tier": described.get("Tier") or "Standard",
    }


def _as_written(shown: Mapping[str, Any], properties: Props) -> Props:
    """`Policies` is text in a template, and data in an answer: equal ones are shown as written."""
    declared = properties.get("Policies")
    if declared and document(declared) == shown.get("Policies"):
        return {**shown, "Policies": declared}
    return dict(shown)


def _descriptions(ctx: Context, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    params = {
        "ParameterFilters": [{"Key": "Name", "Option": "Equals", "Values": list(names)}],
        "MaxResults": _DESCRIPTIONS_AT_ONCE,
    }
    for page in ctx.aws.pages("ssm", "DescribeParameters", params):
        yield from page.get("Parameters", [])


def _tags_of(ctx: Context, name: str) -> Any:
    try:
        answer = ctx.aws.call("ssm", "ListTagsForResource", {"ResourceType": "Parameter", "ResourceId": name})
    except AwsError as refused:
        if refused.code in {"InvalidResourceId", "ParameterNotFound"}:
            return []
        raise
    return answer.get("TagList", [])


def _batches(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])
