"""API Gateway integrations and routes: what an API does with a request.

Integrations have no mark of their own at all, so a create of one is never sent twice; a lost one is looked for by what
it does, among those of its API that nothing else accounts for. A route is unique by its key within its API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stackhold.engines.cloudformation.resources import apigatewayv2_calls as calls
from stackhold.engines.cloudformation.resources import finding
from stackhold.engines.cloudformation.resources.bulk import read_side_by_side
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen
from stackhold.engines.cloudformation.resources.shapes import chosen, differing, like
from stackhold.errors import AwsError, OutcomeUnknown, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props


class Integration(Handler):
    """`AWS::ApiGatewayV2::Integration`."""

    type: ClassVar[TypeName] = TypeName("AWS::ApiGatewayV2::Integration")
    _sent: ClassVar[frozenset[str]] = frozenset(
        {
            "ConnectionId",
            "ConnectionType",
            "ContentHandlingStrategy",
            "CredentialsArn",
            "Description",
            "IntegrationMethod",
            "IntegrationSubtype",
            "IntegrationType",
            "IntegrationUri",
            "PassthroughBehavior",
            "PayloadFormatVersion",
            "RequestParameters",
            "RequestTemplates",
            "ResponseParameters",
            "TemplateSelectionExpression",
            "TimeoutInMillis",
            "TlsConfig",
        }
    )
    properties: ClassVar[frozenset[str]] = _sent | {"ApiId"}
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("ApiId", "IntegrationType", "IntegrationMethod", "IntegrationSubtype")
    defaults: ClassVar[Mapping[str, Any]] = {
        "ConnectionType": "INTERNET",
        "CredentialsArn": "",
        "Description": "",
        "PassthroughBehavior": "WHEN_NO_MATCH",
        "PayloadFormatVersion": "1.0",
        "RequestParameters": {},
        "RequestTemplates": {},
        "ResponseParameters": {},
        "TimeoutInMillis": 30_000,
        "TlsConfig": {},
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """One call, never sent twice: nothing tells two equal integrations apart."""
        params = {"ApiId": want.properties["ApiId"], **self._params(want.properties, self._sent)}
        made = ctx.aws.call("apigatewayv2", "CreateIntegration", params, resend=Resend.NEVER)
        physical_id = PhysicalId(made["IntegrationId"])
        return Made(
            physical_id,
            {"IntegrationId": physical_id},
            observed=self._seen(made, want.properties["ApiId"], want.properties),
        )

    def place(self, properties: Props) -> Props:
        """Its API, and what it does, which is all that tells it from others."""
        return {**super().place(properties), **finding.discreet(properties, "IntegrationUri")}

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """One of its API that does the same and that nothing else accounts for. Equal ones are as good as each
        other. In an API that is not the stack's it could be anybody's."""
        if lost.place["ApiId"] not in lost.stack:
            raise ResourceFailed("an integration in an API of somebody else has nothing to be told by")
        for item in calls.children(ctx, "GetIntegrations", lost.place["ApiId"]):
            physical_id = PhysicalId(item["IntegrationId"])
            names = ("IntegrationType", "IntegrationMethod", "IntegrationSubtype", "IntegrationUri")
            if physical_id not in lost.known and all(finding.fits(lost.place, name, item.get(name)) for name in names):
                return physical_id
        return None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """One call."""
        there = calls.get(ctx, "GetIntegration", ApiId=properties["ApiId"], IntegrationId=physical_id)
        if there is None:
            return None
        return Seen(self._seen(there, properties["ApiId"], properties), {"IntegrationId": physical_id})

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One list per API."""
        return _read_children(self, ctx, wanted, "GetIntegrations", "IntegrationId", self._seen)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call. The service keeps parameters that are not named, so those that went are sent empty."""
        new = want.properties
        names = differing(old, new, self._sent)
        params = self._params({**{name: self.defaults.get(name, "") for name in names}, **new}, names)
        for name in ("RequestParameters", "ResponseParameters"):
            if name in params:
                params[name] = calls.with_gone_keys(_response(old.get(name) or {}, name), params[name])
        if params:
            ctx.aws.call(
                "apigatewayv2",
                "UpdateIntegration",
                {"ApiId": new["ApiId"], "IntegrationId": physical_id, **params},
            )
        return Made(physical_id, {"IntegrationId": physical_id})

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call."""
        calls.delete(ctx, "DeleteIntegration", ApiId=properties["ApiId"], IntegrationId=physical_id)

    def _params(self, properties: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        params = chosen(properties, sorted(names))
        if "ResponseParameters" in params:
            params["ResponseParameters"] = _response(params["ResponseParameters"], "ResponseParameters")
        return params

    def _seen(self, there: Mapping[str, Any], api_id: str, properties: Props) -> Props:
        seen: Props = {"ApiId": api_id, **chosen(there, sorted(self._sent))}
        if "ResponseParameters" in seen:
            seen["ResponseParameters"] = {
                status: {"ResponseParameters": [{"Destination": key, "Source": value} for key, value in entry.items()]}
                for status, entry in seen["ResponseParameters"].items()
            }
        return {name: like(properties.get(name), value) for name, value in seen.items()}


class Route(Handler):
    """`AWS::ApiGatewayV2::Route`."""

    type: ClassVar[TypeName] = TypeName("AWS::ApiGatewayV2::Route")
    _sent: ClassVar[frozenset[str]] = frozenset(
        {
            "ApiKeyRequired",
            "AuthorizationScopes",
            "AuthorizationType",
            "AuthorizerId",
            "ModelSelectionExpression",
            "OperationName",
            "RequestModels",
            "RequestParameters",
            "RouteKey",
            "RouteResponseSelectionExpression",
            "Target",
        }
    )
    properties: ClassVar[frozenset[str]] = _sent | {"ApiId"}
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("ApiId", "RouteKey")
    defaults: ClassVar[Mapping[str, Any]] = {
        "ApiKeyRequired": False,
        "AuthorizationScopes": [],
        "AuthorizationType": "NONE",
        "OperationName": "",
        "RequestModels": {},
        "RequestParameters": {},
        "Target": "",
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """One call. Its key is unique in the API, so a lost answer is looked for by the key."""
        new = want.properties
        params = {"ApiId": new["ApiId"], **chosen(new, sorted(self._sent))}
        try:
            made = ctx.aws.call("apigatewayv2", "CreateRoute", params, resend=Resend.NEVER)
        except (AwsError, OutcomeUnknown) as problem:
            if isinstance(problem, AwsError) and not (problem.code == calls.EXISTS and problem.sent_before):
                raise
            found = calls.look(ctx, lambda: self._with_key(ctx, new))
            if found is None:
                raise
            made = found
        physical_id = PhysicalId(made["RouteId"])
        return Made(physical_id, {"RouteId": physical_id}, observed=self._seen(made, new["ApiId"], new))

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The route of that key. In an API that is not the stack's it could be anybody's."""
        found = [
            PhysicalId(item["RouteId"])
            for item in calls.children(ctx, "GetRoutes", lost.place["ApiId"])
            if item.get("RouteKey") == lost.place["RouteKey"] and item["RouteId"] not in lost.known
        ]
        if found and lost.place["ApiId"] not in lost.stack:
            raise ResourceFailed("a route in an API of somebody else has nothing to be told by")
        return found[0] if found else None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """One call."""
        there = calls.get(ctx, "GetRoute", ApiId=properties["ApiId"], RouteId=physical_id)
        if there is None:
            return None
        return Seen(self._seen(there, properties["ApiId"], properties), {"RouteId": physical_id})

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One list per API."""
        return _read_children(self, ctx, wanted, "GetRoutes", "RouteId", self._seen)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call, one more for each request parameter that went."""
        new = want.properties
        names = differing(old, new, self._sent)
        gone = (old.get("RequestParameters") or {}).keys() - (new.get("RequestParameters") or {}).keys()
        for key in sorted(gone):
            calls.delete(
                ctx, "DeleteRouteRequestParameter", ApiId=new["ApiId"], RouteId=physical_id, RequestParameterKey=key
            )
        if not new.get("RequestParameters") and "RequestParameters" in names:
            names.remove("RequestParameters")
        if names:
            params = {name: new.get(name, self.defaults.get(name, "")) for name in names}
            ctx.aws.call("apigatewayv2", "UpdateRoute", {"ApiId": new["ApiId"], "RouteId": physical_id, **params})
        return Made(physical_id, {"RouteId": physical_id})

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call."""
        calls.delete(ctx, "DeleteRoute", ApiId=properties["ApiId"], RouteId=physical_id)

    def _with_key(self, ctx: Context, properties: Props) -> dict[str, Any] | None:
        routes = calls.items(ctx, "GetRoutes", {"ApiId": properties["ApiId"]})
        return next((route for route in routes if route.get("RouteKey") == properties["RouteKey"]), None)

    def _seen(self, there: Mapping[str, Any], api_id: str, properties: Props) -> Props:
        seen: Props = {"ApiId": api_id, **chosen(there, sorted(self._sent))}
        return {name: like(properties.get(name), value) for name, value in seen.items()}


def _response(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The template's list of destinations and sources as the service's map; other parameters as they are."""
    if name != "ResponseParameters":
        return dict(value)
    return {
        status: {entry["Destination"]: entry["Source"] for entry in settings.get("ResponseParameters") or []}
        for status, settings in value.items()
    }


def _read_children(
    handler: Handler,
    ctx: Context,
    wanted: Mapping[PhysicalId, Props],
    operation: str,
    id_name: str,
    seen: Callable[[Mapping[str, Any], str, Props], Props],
) -> dict[PhysicalId, Seen]:
    if len(wanted) < 2:
        return read_side_by_side(handler, ctx, wanted)
    found: dict[PhysicalId, Seen] = {}
    for api_id in sorted({str(properties["ApiId"]) for properties in wanted.values()}):
        try:
            items = list(calls.items(ctx, operation, {"ApiId": api_id}))
        except AwsError as refused:
            if refused.code != calls.GONE:
                raise
            continue
        for item in items:
            physical_id = PhysicalId(item[id_name])
            if physical_id in wanted and wanted[physical_id]["ApiId"] == api_id:
                found[physical_id] = Seen(seen(item, api_id, wanted[physical_id]), {id_name: physical_id})
    return found
