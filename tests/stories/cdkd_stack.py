"""A stack that cdkd deployed, made again in an emulator, and its record with the ids given there.

Every id that the emulator makes up (APIs, integrations, roles, mappings, subscriptions, the host in a queue's URL) is
replaced in the record, wherever it stands.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Client = Callable[[str], Any]
    Recorded = dict[str, Any]


def rebuilt(client: Client, record: str) -> str:
    """Make every resource of a record, in its order; the record as it would have been written here."""
    for logical_id in json.loads(record)["resources"]:
        resource = json.loads(record)["resources"][logical_id]
        for old, new in _MAKE[resource["resourceType"]](client, resource).items():
            record = record.replace(old, new)
    return record


def _topic(client: Client, resource: Recorded) -> dict[str, str]:
    client("sns").create_topic(Name=resource["attributes"]["TopicName"])
    return {}


def _subscription(client: Client, resource: Recorded) -> dict[str, str]:
    made = client("sns").subscribe(**resource["properties"], ReturnSubscriptionArn=True)
    return {resource["physicalId"]: made["SubscriptionArn"]}


def _queue(client: Client, resource: Recorded) -> dict[str, str]:
    attributes = {name: str(value) for name, value in resource["properties"].items()}
    made = client("sqs").create_queue(QueueName=resource["attributes"]["QueueName"], Attributes=attributes)
    return {resource["physicalId"]: made["QueueUrl"]}


def _queue_policy(client: Client, resource: Recorded) -> dict[str, str]:
    policy = json.dumps(resource["properties"]["PolicyDocument"])
    for url in resource["properties"]["Queues"]:
        client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    return {}


def _table(client: Client, resource: Recorded) -> dict[str, str]:
    made = client("dynamodb").create_table(TableName=resource["physicalId"], **resource["properties"])
    return {resource["attributes"]["TableId"]: made["TableDescription"]["TableId"]}


def _role(client: Client, resource: Recorded) -> dict[str, str]:
    name, properties = resource["physicalId"], resource["properties"]
    trust = json.dumps(properties["AssumeRolePolicyDocument"])
    made = client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    for arn in properties["ManagedPolicyArns"]:
        client("iam").attach_role_policy(RoleName=name, PolicyArn=arn)
    return {resource["attributes"]["RoleId"]: made["Role"]["RoleId"]}


def _role_policy(client: Client, resource: Recorded) -> dict[str, str]:
    properties = resource["properties"]
    for role in properties["Roles"]:
        client("iam").put_role_policy(
            RoleName=role,
            PolicyName=properties["PolicyName"],
            PolicyDocument=json.dumps(properties["PolicyDocument"]),
        )
    return {}


def _function(client: Client, resource: Recorded) -> dict[str, str]:
    properties = dict(resource["properties"])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("index.js", properties.pop("Code")["ZipFile"])
    functions = client("lambda")
    functions.create_function(FunctionName=resource["physicalId"], Code={"ZipFile": archive.getvalue()}, **properties)
    functions.get_waiter("function_active_v2").wait(
        FunctionName=resource["physicalId"], WaiterConfig={"Delay": 1, "MaxAttempts": 20}
    )
    return {}


def _permission(client: Client, resource: Recorded) -> dict[str, str]:
    client("lambda").add_permission(StatementId=resource["physicalId"], **resource["properties"])
    return {}


def _mapping(client: Client, resource: Recorded) -> dict[str, str]:
    made = client("lambda").create_event_source_mapping(**resource["properties"])
    return {resource["physicalId"]: made["UUID"]}


def _api(client: Client, resource: Recorded) -> dict[str, str]:
    made = client("apigatewayv2").create_api(**resource["properties"])
    return {
        resource["attributes"]["ApiEndpoint"]: made["ApiEndpoint"],
        resource["physicalId"]: made["ApiId"],
    }


def _stage(client: Client, resource: Recorded) -> dict[str, str]:
    client("apigatewayv2").create_stage(**resource["properties"])
    return {}


def _integration(client: Client, resource: Recorded) -> dict[str, str]:
    made = client("apigatewayv2").create_integration(**resource["properties"])
    return {resource["physicalId"]: made["IntegrationId"]}


def _route(client: Client, resource: Recorded) -> dict[str, str]:
    made = client("apigatewayv2").create_route(**resource["properties"])
    return {resource["physicalId"]: made["RouteId"]}


def _rule(client: Client, resource: Recorded) -> dict[str, str]:
    properties = dict(resource["properties"])
    name, targets = resource["physicalId"].rpartition("/")[2], properties.pop("Targets")
    client("events").put_rule(Name=name, **properties)
    client("events").put_targets(Rule=name, Targets=targets)
    return {}


_MAKE: dict[str, Callable[[Client, Recorded], dict[str, str]]] = {
    "AWS::ApiGatewayV2::Api": _api,
    "AWS::ApiGatewayV2::Integration": _integration,
    "AWS::ApiGatewayV2::Route": _route,
    "AWS::ApiGatewayV2::Stage": _stage,
    "AWS::DynamoDB::Table": _table,
    "AWS::Events::Rule": _rule,
    "AWS::IAM::Policy": _role_policy,
    "AWS::IAM::Role": _role,
    "AWS::Lambda::EventSourceMapping": _mapping,
    "AWS::Lambda::Function": _function,
    "AWS::Lambda::Permission": _permission,
    "AWS::SNS::Subscription": _subscription,
    "AWS::SNS::Topic": _topic,
    "AWS::SQS::Queue": _queue,
    "AWS::SQS::QueuePolicy": _queue_policy,
}
