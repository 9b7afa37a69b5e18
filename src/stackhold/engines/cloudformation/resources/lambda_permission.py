"""Permissions to invoke a function: statements in its resource policy.

A statement's id is the physical id, generated like any name: unique per run and replacement, so that a new
statement can be made beside the one that it replaces. The policy is one document per function and qualifier, so
that a bulk read asks once for each.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import lambda_names, tags
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.engines.cloudformation.resources.polling import wait_for
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.resources.lambda_names import FunctionName
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "ResourceNotFoundException"
_EXISTS_OR_BUSY: Final = "ResourceConflictException"
_BUSY_BUDGET_MS: Final = 60_000
_SENT: Final = (
    "Action",
    "EventSourceToken",
    "FunctionUrlAuthType",
    "InvokedViaFunctionUrl",
    "Principal",
    "PrincipalOrgID",
    "SourceAccount",
    "SourceArn",
)
_CONDITIONS: Final = {
    "aws:sourcearn": "SourceArn",
    "aws:sourceaccount": "SourceAccount",
    "aws:principalorgid": "PrincipalOrgID",
    "lambda:eventsourcetoken": "EventSourceToken",
    "lambda:functionurlauthtype": "FunctionUrlAuthType",
    "lambda:invokedviafunctionurl": "InvokedViaFunctionUrl",
}
"""Condition keys of a statement, in lower case, by the property that makes them."""


class Permission(Handler):
    """AWS::Lambda::Permission. The physical id is the statement's id."""

    type: ClassVar[TypeName] = TypeName("AWS::Lambda::Permission")
    properties: ClassVar[frozenset[str]] = frozenset({*_SENT, "FunctionName"})
    name_rule: ClassVar[NameRule | None] = NameRule(property="Id", limit=100)
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("FunctionName",)
    scope: ClassVar[tuple[str, ...]] = ("FunctionName",)

    def create(self, ctx: Context, want: Want) -> Made:
        """Add the statement. The refusal of one that exists has the code of a busy function, so look."""
        function = lambda_names.parse(want.properties["FunctionName"])
        params: dict[str, Any] = {
            **function.params(),
            "StatementId": want.name,
            **{name: want.properties[name] for name in _SENT if want.properties.get(name) is not None},
        }

        def add() -> bool | None:
            try:
                ctx.aws.call("lambda", "AddPermission", params)
            except AwsError as error:
                if error.code != _EXISTS_OR_BUSY:
                    raise
                there = _statements(ctx, function).get(want.name)
                if there is None:
                    return None
                self._refuse_foreign(there, want, error)
            return True

        wait_for(ctx, add, budget_ms=_BUSY_BUDGET_MS, what=f"permission {want.name}: its function being free")
        observed = {name: value for name, value in want.properties.items() if name in self.properties}
        return Made(PhysicalId(want.name), {"Id": want.name}, observed=observed)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The statement of that id in its function's policy. No template writes such an id, so it is ours."""
        there = _statements(ctx, lambda_names.parse(str(lost.place["FunctionName"])))
        statement = PhysicalId(lost.name)
        return statement if statement in there and statement not in lost.known else None

    def _refuse_foreign(self, statement: Mapping[str, Any], want: Want, refused: AwsError) -> None:
        """The id is one that only this run makes, unless something else is in the statement."""
        if _properties(statement, want.properties) != _sent(want.properties):
            raise tags.foreign(
                "permission", want.name, service="lambda", operation="AddPermission", code=refused.code
            ) from refused

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The statement in the policy of its function."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One policy per function and qualifier."""
        policies: dict[FunctionName, dict[str, Any]] = {}
        found: dict[PhysicalId, Seen] = {}
        for physical_id, properties in wanted.items():
            function = lambda_names.parse(properties["FunctionName"])
            if function not in policies:
                policies[function] = _statements(ctx, function)
            statement = policies[function].get(physical_id)
            if statement is not None:
                seen = {"FunctionName": properties["FunctionName"], **_properties(statement, properties)}
                found[physical_id] = Seen(seen, {"Id": str(physical_id)})
        return found

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """AWS has no update: every property replaces. With equal properties there is nothing to do."""
        if old and _sent(old) != _sent(want.properties):
            self.delete(ctx, physical_id, old)
            return self.create(ctx, want)
        return Made(physical_id, {"Id": str(physical_id)})

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Remove the statement; a function that is gone took it along."""
        function = lambda_names.parse(properties["FunctionName"])
        try:
            ctx.aws.call("lambda", "RemovePermission", {**function.params(), "StatementId": physical_id})
        except AwsError as error:
            if error.code != _GONE:
                raise


def _sent(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: properties[name] for name in _SENT if properties.get(name) is not None}


def _statements(ctx: Context, function: FunctionName) -> dict[str, Any]:
    """The statements of a function's policy by their ids; none when there is no policy."""
    try:
        policy = ctx.aws.call("lambda", "GetPolicy", function.params())["Policy"]
    except AwsError as error:
        if error.code == _GONE:
            return {}
        raise
    return {statement["Sid"]: statement for statement in json.loads(policy).get("Statement", []) if "Sid" in statement}


def _properties(statement: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a statement says, as the properties that made it."""
    found: dict[str, Any] = {
        "Action": _single(statement.get("Action")),
        "Principal": _principal(statement.get("Principal"), str(declared.get("Principal") or "")),
    }
    for pairs in (statement.get("Condition") or {}).values():
        for key, value in pairs.items():
            name = _CONDITIONS.get(key.lower())
            if name:
                found[name] = _single(value)
    if "InvokedViaFunctionUrl" in found:
        found["InvokedViaFunctionUrl"] = str(found["InvokedViaFunctionUrl"]).lower() == "true"
    return found


def _principal(principal: Any, declared: str) -> str:
    """A service, an account or `*`, in the words of the template when both mean the same."""
    text = str(_single(next(iter(principal.values()), "")) if isinstance(principal, dict) else principal)
    root = re.fullmatch(r"arn:[\w-]+:iam::(\d{12}):root", text)
    return declared if root and declared == root[1] else text


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value
