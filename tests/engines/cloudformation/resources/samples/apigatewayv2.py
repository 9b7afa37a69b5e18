"""API Gateway V2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _api(client: Client) -> Given:
    gateway = client("apigatewayv2")
    api = gateway.create_api(Name="shop", ProtocolType="HTTP")["ApiId"]
    integration = gateway.create_integration(
        ApiId=api, IntegrationType="HTTP_PROXY", IntegrationMethod="GET", IntegrationUri="https://a.example/"
    )["IntegrationId"]
    return {"api": api, "integration": integration}


def _apis(client: Client, _: Given) -> int:
    return len(client("apigatewayv2").get_apis()["Items"])


def _integrations(client: Client, given: Given) -> int:
    return len(client("apigatewayv2").get_integrations(ApiId=given["api"])["Items"])


def _routes(client: Client, given: Given) -> int:
    return len(client("apigatewayv2").get_routes(ApiId=given["api"])["Items"])


def _stages(client: Client, given: Given) -> int:
    return len(client("apigatewayv2").get_stages(ApiId=given["api"])["Items"])


def _api_tags(client: Client, api: str, _: Given) -> Mapping[str, str]:
    return _with_later(client, client("apigatewayv2").get_api(ApiId=api), f"/apis/{api}")


def _stage_tags(client: Client, name: str, given: Given) -> Mapping[str, str]:
    stage = client("apigatewayv2").get_stage(ApiId=given["api"], StageName=name)
    return _with_later(client, stage, f"/apis/{given['api']}/stages/{name}")


def _with_later(client: Client, thing: Mapping[str, Any], path: str) -> Mapping[str, str]:
    """ministack shows the tags of the create on the thing itself, and later ones only apart from it."""
    later = client("apigatewayv2").get_tags(ResourceArn=f"arn:aws:apigateway:us-east-1::{path}")
    return {**thing.get("Tags", {}), **later.get("Tags", {})}


SAMPLES = (
    Sample(
        type="AWS::ApiGatewayV2::Api",
        properties=lambda _: {
            "Name": "shop",
            "ProtocolType": "HTTP",
            "Description": "Sells",
            "CorsConfiguration": {"AllowMethods": ["GET"], "AllowOrigins": ["*"], "MaxAge": 60},
            "Tags": {"colour": "red", "size": "l"},
        },
        update=lambda _: {
            "Name": "store",
            "Description": "Stores",
            "CorsConfiguration": {"AllowMethods": ["GET", "PUT"], "AllowOrigins": ["https://a.example"]},
            "Tags": {"colour": "blue"},
        },
        remove=("Description", "CorsConfiguration", "Tags"),
        count=_apis,
        attributes=frozenset({"ApiId", "ApiEndpoint", "ExecuteApiArn"}),
        tags=_api_tags,
        blind={"ministack": frozenset({"Tags"})},
    ),
    Sample(
        type="AWS::ApiGatewayV2::Integration",
        properties=lambda given: {
            "ApiId": given["api"],
            "IntegrationType": "HTTP_PROXY",
            "IntegrationMethod": "GET",
            "IntegrationUri": "https://a.example/items",
            "PayloadFormatVersion": "1.0",
            "Description": "Items",
        },
        update=lambda _: {"IntegrationUri": "https://b.example/items", "TimeoutInMillis": 5000},
        remove=("Description", "TimeoutInMillis"),
        prepare=_api,
        count=_integrations,
        attributes=frozenset({"IntegrationId"}),
    ),
    Sample(
        type="AWS::ApiGatewayV2::Route",
        properties=lambda given: {
            "ApiId": given["api"],
            "RouteKey": "GET /items",
            "AuthorizationType": "NONE",
            "Target": f"integrations/{given['integration']}",
            "OperationName": "list",
        },
        update=lambda _: {"RouteKey": "ANY /items", "OperationName": "all"},
        remove=("OperationName",),
        prepare=_api,
        count=_routes,
        attributes=frozenset({"RouteId"}),
    ),
    Sample(
        type="AWS::ApiGatewayV2::Stage",
        properties=lambda given: {
            "ApiId": given["api"],
            "StageName": "$default",
            "AutoDeploy": True,
            "Description": "Live",
            "StageVariables": {"level": "1"},
            "Tags": {"colour": "red"},
        },
        update=lambda _: {
            "AutoDeploy": False,
            "Description": "Dead",
            "StageVariables": {"level": "2"},
            "Tags": {"size": "l"},
        },
        remove=("Description", "Tags"),
        prepare=_api,
        count=_stages,
        tags=_stage_tags,
        blind={"ministack": frozenset({"Tags"})},
        emulators=("ministack",),
    ),
)
