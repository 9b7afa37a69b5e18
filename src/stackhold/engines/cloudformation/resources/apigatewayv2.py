"""API Gateway HTTP and WebSocket APIs and their stages.

An API has neither a unique name nor a token, so its create is never sent twice: when the answer is lost, the API is
looked for by its ownership tags. A stage is unique by its name within its API. Bodies and quick creates (`Body`,
`Target`, …) are left to Cloud Control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stackhold.engines.cloudformation.resources import apigatewayv2_calls as calls
from stackhold.engines.cloudformation.resources import finding, tags
from stackhold.engines.cloudformation.resources.bulk import read_side_by_side
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen
from stackhold.engines.cloudformation.resources.shapes import chosen, differing, like
from stackhold.errors import AwsError, OutcomeUnknown
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props


class Api(Handler):
    """`AWS::ApiGatewayV2::Api`."""

    type: ClassVar[TypeName] = TypeName("AWS::ApiGatewayV2::Api")
    _sent: ClassVar[frozenset[str]] = frozenset(
        {
            "ApiKeySelectionExpression",
            "CorsConfiguration",
            "Description",
            "DisableExecuteApiEndpoint",
            "DisableSchemaValidation",
            "IpAddressType",
            "Name",
            "RouteSelectionExpression",
            "Version",
        }
    )
    properties: ClassVar[frozenset[str]] = _sent | {"ProtocolType", "Tags"}
    found_by: ClassVar[FoundBy] = FoundBy.TAG
    defaults: ClassVar[Mapping[str, Any]] = {
        "ApiKeySelectionExpression": "$request.header.x-api-key",
        "CorsConfiguration": {},
        "Description": "",
        "DisableExecuteApiEndpoint": False,
        "DisableSchemaValidation": False,
        "IpAddressType": "ipv4",
        "RouteSelectionExpression": "$request.method $request.path",
        "Tags": {},
        "Version": "",
    }
    write_only: ClassVar[frozenset[str]] = frozenset({"DisableSchemaValidation"})

    def create(self, ctx: Context, want: Want) -> Made:
        """One call, whose answer is the baseline."""
        params = chosen(want.properties, sorted(self._sent | {"ProtocolType"}))
        params["Tags"] = tags.for_create(want)
        try:
            api = ctx.aws.call("apigatewayv2", "CreateApi", params, resend=Resend.NEVER)
        except OutcomeUnknown:
            found = calls.look(ctx, lambda: self._with_our_tags(ctx, want))
            if found is None:
                raise
            api = found
        seen = {**_api_seen(api, want.properties), "Tags": tags.visible(tags.of_template(want))}
        return Made(PhysicalId(api["ApiId"]), _api_attributes(ctx, api), observed=seen)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The API with our tags. The list cannot be filtered, so all of it is read."""
        return finding.tagged(lost, calls.items(ctx, "GetApis", {}), key="ApiId")

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """One call."""
        api = calls.get(ctx, "GetApi", ApiId=physical_id)
        if api is None:
            return None
        return Seen(_api_seen(api, properties), _api_attributes(ctx, api))

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """The list has everything; one API is read by itself."""
        if len(wanted) < 2:
            return read_side_by_side(self, ctx, wanted)
        there = {PhysicalId(api["ApiId"]): api for api in calls.items(ctx, "GetApis", {})}
        return {
            physical_id: Seen(_api_seen(there[physical_id], properties), _api_attributes(ctx, there[physical_id]))
            for physical_id, properties in wanted.items()
            if physical_id in there
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call for what changed, one to take CORS away, two for tags."""
        new = want.properties
        names = differing(old, new, self._sent)
        attributes: dict[str, Any] = {}
        if "CorsConfiguration" in names and not new.get("CorsConfiguration"):
            names.remove("CorsConfiguration")
            if old.get("CorsConfiguration"):
                calls.delete(ctx, "DeleteCorsConfiguration", ApiId=physical_id)
        if names:
            params = {name: new.get(name, self._default(name, new)) for name in names}
            api = ctx.aws.call("apigatewayv2", "UpdateApi", {"ApiId": physical_id, **params})
            attributes = _api_attributes(ctx, api)
        calls.retag(ctx, f"/apis/{physical_id}", old, want)
        return Made(physical_id, attributes or self._attributes_of(ctx, physical_id, new))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call; what is in the API goes with it."""
        calls.delete(ctx, "DeleteApi", ApiId=physical_id)

    def _default(self, name: str, properties: Props) -> Any:
        if name == "RouteSelectionExpression" and properties.get("ProtocolType") == "WEBSOCKET":
            return "$request.body.action"
        return self.defaults.get(name)

    def _attributes_of(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Mapping[str, Any]:
        seen = self.read(ctx, physical_id, properties)
        return seen.attributes if seen else {}

    def _with_our_tags(self, ctx: Context, want: Want) -> dict[str, Any] | None:
        return next((api for api in calls.items(ctx, "GetApis", {}) if tags.are_ours(api.get("Tags"), want)), None)


class Stage(Handler):
    """`AWS::ApiGatewayV2::Stage`. Its physical id is its name."""

    type: ClassVar[TypeName] = TypeName("AWS::ApiGatewayV2::Stage")
    _sent: ClassVar[frozenset[str]] = frozenset(
        {
            "AccessLogSettings",
            "AutoDeploy",
            "ClientCertificateId",
            "DefaultRouteSettings",
            "DeploymentId",
            "Description",
            "RouteSettings",
            "StageVariables",
        }
    )
    properties: ClassVar[frozenset[str]] = _sent | {"ApiId", "StageName", "Tags"}
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("ApiId", "StageName")
    scope: ClassVar[tuple[str, ...]] = ("ApiId",)
    defaults: ClassVar[Mapping[str, Any]] = {
        "AccessLogSettings": {},
        "AutoDeploy": False,
        "ClientCertificateId": "",
        "DefaultRouteSettings": {"DetailedMetricsEnabled": False},
        "DeploymentId": "",
        "Description": "",
        "RouteSettings": {},
        "StageVariables": {},
        "Tags": {},
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """One call. One that exists is ours only with our tags."""
        new = want.properties
        params = {
            "ApiId": new["ApiId"],
            "StageName": new["StageName"],
            "Tags": tags.for_create(want),
            **chosen(new, sorted(self._sent)),
        }
        physical_id = PhysicalId(new["StageName"])
        try:
            made = ctx.aws.call("apigatewayv2", "CreateStage", params)
        except AwsError as refused:
            if refused.code != calls.EXISTS:
                raise
            there = calls.get(ctx, "GetStage", ApiId=new["ApiId"], StageName=physical_id)
            if there is None or not tags.are_ours(there.get("Tags"), want):
                raise tags.foreign(
                    "stage", physical_id, service="apigatewayv2", operation="CreateStage", code=calls.EXISTS
                ) from refused
            return self.update(ctx, physical_id, {}, want)
        seen = {**self._seen(made, new["ApiId"], new), "Tags": tags.visible(tags.of_template(want))}
        return Made(physical_id, observed=seen)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The stage of that name in the stack's own API; in another one only with our tags."""
        api, name = lost.place["ApiId"], PhysicalId(str(lost.place["StageName"]))
        there = calls.get(ctx, "GetStage", ApiId=api, StageName=name)
        if there is None or name in lost.known:
            return None
        return name if api in lost.stack or tags.are_ours(there.get("Tags"), lost) else None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """One call."""
        there = calls.get(ctx, "GetStage", ApiId=properties["ApiId"], StageName=physical_id)
        if there is None:
            return None
        return Seen(self._seen(there, properties["ApiId"], properties))

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """Stages of several APIs may share a physical id, so each is read by itself."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call, others for settings that went, two for tags."""
        new = want.properties
        names = differing(old, new, self._sent - {"AccessLogSettings", "RouteSettings"})
        params = {name: new.get(name, self.defaults[name]) for name in names}
        if "StageVariables" in params:
            params["StageVariables"] = calls.with_gone_keys(old.get("StageVariables") or {}, params["StageVariables"])
        if params.get("DeploymentId") == "":
            del params["DeploymentId"]
        params.update(self._settings(ctx, physical_id, old, new))
        if params:
            ctx.aws.call("apigatewayv2", "UpdateStage", {"ApiId": new["ApiId"], "StageName": physical_id, **params})
        calls.retag(ctx, f"/apis/{new['ApiId']}/stages/{physical_id}", old, want)
        return Made(physical_id)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call."""
        calls.delete(ctx, "DeleteStage", ApiId=properties["ApiId"], StageName=physical_id)

    def _settings(self, ctx: Context, physical_id: PhysicalId, old: Props, new: Props) -> dict[str, Any]:
        """Log and route settings: taken away by calls of their own, set together with the rest."""
        where = {"ApiId": new["ApiId"], "StageName": physical_id}
        params: dict[str, Any] = {}
        if old.get("AccessLogSettings") and not new.get("AccessLogSettings"):
            calls.delete(ctx, "DeleteAccessLogSettings", **where)
        elif old.get("AccessLogSettings") != new.get("AccessLogSettings"):
            params["AccessLogSettings"] = new["AccessLogSettings"]
        before, after = old.get("RouteSettings") or {}, new.get("RouteSettings") or {}
        for key in sorted(before.keys() - after.keys()):
            calls.delete(ctx, "DeleteRouteSettings", **where, RouteKey=key)
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        if changed:
            params["RouteSettings"] = changed
        return params

    def _seen(self, there: Mapping[str, Any], api_id: str, properties: Props) -> Props:
        seen: Props = {
            "ApiId": api_id,
            "StageName": there["StageName"],
            **chosen(there, sorted(self._sent)),
            "Tags": tags.visible(there.get("Tags")),
        }
        if "DeploymentId" not in properties:
            # A stage that deploys by itself has deployments that nobody declared.
            seen.pop("DeploymentId", None)
        return {name: like(properties.get(name), value) for name, value in seen.items()}


def _api_seen(api: Mapping[str, Any], properties: Props) -> Props:
    names = Api.properties - {"Tags"}
    seen: Props = {**chosen(api, sorted(names)), "Tags": tags.visible(api.get("Tags"))}
    return {name: like(properties.get(name), value) for name, value in seen.items()}


def _api_attributes(ctx: Context, api: Mapping[str, Any]) -> dict[str, str]:
    api_id = api["ApiId"]
    return {
        "ApiId": api_id,
        "ApiEndpoint": api.get("ApiEndpoint", ""),
        "ExecuteApiArn": f"arn:{ctx.partition}:execute-api:{ctx.region}:{ctx.account}:{api_id}",
    }
