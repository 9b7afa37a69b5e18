"""Everything that exists in an emulator, asked through clients that do not go through our code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDED = frozenset({"deleted", "deleting"})


def inventory(client: Callable[[str], Any]) -> dict[str, list[str]]:
    """The names or ids of all resources of the services under test, by kind. `client` gives a service's client."""
    found = {
        "buckets": [item["Name"] for item in client("s3").list_buckets()["Buckets"]],
        "tables": client("dynamodb").list_tables()["TableNames"],
        "queues": client("sqs").list_queues().get("QueueUrls", []),
        "parameters": [item["Name"] for item in client("ssm").describe_parameters()["Parameters"]],
        "log groups": [item["logGroupName"] for item in client("logs").describe_log_groups()["logGroups"]],
        **_messages(client("sns")),
        **_identities(client("iam")),
        **_functions(client("lambda")),
        **_rules(client("events")),
        **_apis(client("apigatewayv2")),
        **_network(client("ec2")),
    }
    return {kind: sorted(names) for kind, names in found.items()}


def _messages(sns: Any) -> dict[str, list[str]]:
    return {
        "topics": [item["TopicArn"] for item in sns.list_topics()["Topics"]],
        "subscriptions": [item["SubscriptionArn"] for item in sns.list_subscriptions()["Subscriptions"]],
    }


def _identities(iam: Any) -> dict[str, list[str]]:
    roles = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    return {
        "roles": roles,
        "role policies": [
            f"{role} {name}" for role in roles for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
        ],
        "own policies": [item["Arn"] for item in iam.list_policies(Scope="Local")["Policies"]],
        "instance profiles": [item["InstanceProfileName"] for item in iam.list_instance_profiles()["InstanceProfiles"]],
    }


def _functions(functions: Any) -> dict[str, list[str]]:
    return {
        "functions": [item["FunctionName"] for item in functions.list_functions()["Functions"]],
        "mappings": [
            item["UUID"]
            for item in functions.list_event_source_mappings()["EventSourceMappings"]
            if item.get("State") != "Deleting"
        ],
    }


def _rules(events: Any) -> dict[str, list[str]]:
    rules = [item["Name"] for item in events.list_rules()["Rules"]]
    return {
        "rules": rules,
        "targets": [
            f"{rule} {target['Id']}" for rule in rules for target in events.list_targets_by_rule(Rule=rule)["Targets"]
        ],
    }


def _apis(apis: Any) -> dict[str, list[str]]:
    ids = [item["ApiId"] for item in apis.get_apis()["Items"]]
    return {
        "apis": ids,
        "stages": [f"{api} {item['StageName']}" for api in ids for item in apis.get_stages(ApiId=api)["Items"]],
        "routes": [f"{api} {item['RouteId']}" for api in ids for item in apis.get_routes(ApiId=api)["Items"]],
        "integrations": [
            f"{api} {item['IntegrationId']}" for api in ids for item in apis.get_integrations(ApiId=api)["Items"]
        ],
    }


def _network(ec2: Any) -> dict[str, list[str]]:
    return {
        "vpcs": [item["VpcId"] for item in ec2.describe_vpcs()["Vpcs"]],
        "subnets": [item["SubnetId"] for item in ec2.describe_subnets()["Subnets"]],
        "security groups": [item["GroupId"] for item in ec2.describe_security_groups()["SecurityGroups"]],
        "route tables": [item["RouteTableId"] for item in ec2.describe_route_tables()["RouteTables"]],
        "internet gateways": [
            item["InternetGatewayId"] for item in ec2.describe_internet_gateways()["InternetGateways"]
        ],
        "addresses": [item["AllocationId"] for item in ec2.describe_addresses()["Addresses"]],
        "NAT gateways": [
            item["NatGatewayId"] for item in ec2.describe_nat_gateways()["NatGateways"] if item["State"] not in _ENDED
        ],
        "endpoints": [
            item["VpcEndpointId"]
            for item in ec2.describe_vpc_endpoints()["VpcEndpoints"]
            if item["State"].lower() not in _ENDED
        ],
    }
