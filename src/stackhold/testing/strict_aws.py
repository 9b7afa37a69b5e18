"""Refuses what AWS refuses and an emulator takes: a second one of what may be there once.

    with SlowProxy(emulator.url) as proxy:
        strict(proxy, emulator)

Judged at the moment at which a request is forwarded, so that one that was held and lands late is refused too. The
emulator itself is asked what there is. Two requests that race each other may both pass.
"""

from __future__ import annotations

import functools
import ipaddress
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from stackhold.testing.emulators import CREDENTIALS
from stackhold.testing.proxy import Answer, Rule

if TYPE_CHECKING:
    from stackhold.testing.emulators import Emulator
    from stackhold.testing.http_messages import Message
    from stackhold.testing.proxy import Call, SlowProxy


def strict(proxy: SlowProxy, emulator: Emulator, *, account: str = CREDENTIALS["AWS_ACCESS_KEY_ID"]) -> None:
    """Add the rules to a proxy in front of this emulator; `account` is the access key that the requests come with."""
    asked = _Asked(emulator.url, account)
    proxy.add(Rule(service="apigateway", operation="CreateRoute", judge=asked.route))
    proxy.add(Rule(service="apigateway", operation="CreateStage", judge=asked.stage))
    proxy.add(Rule(service="lambda", operation="CreateEventSourceMapping", judge=asked.mapping))
    proxy.add(Rule(service="ec2", operation="CreateSubnet", judge=asked.subnet))
    proxy.add(Rule(service="ec2", operation="CreateRoute", judge=asked.network_route))


class _Asked:
    """What the emulator says is there."""

    def __init__(self, url: str, account: str) -> None:
        self._url = url
        self._account = account

    def route(self, call: Call, request: Message) -> Answer | None:
        """An HTTP API has one route of a key."""
        api, key = _api_of(call), json.loads(request.body)["routeKey"]
        routes = self._asked("apigatewayv2", "get_routes", call, ApiId=api)["Items"]
        if any(route["RouteKey"] == key for route in routes):
            return Answer(409, "ConflictException", f"Route with key {key} already exists for this API")
        return None

    def stage(self, call: Call, request: Message) -> Answer | None:
        """An API has one stage of a name."""
        api, name = _api_of(call), json.loads(request.body)["stageName"]
        stages = self._asked("apigatewayv2", "get_stages", call, ApiId=api)["Items"]
        if any(stage["StageName"] == name for stage in stages):
            return Answer(409, "ConflictException", "Stage already exists")
        return None

    def mapping(self, call: Call, request: Message) -> Answer | None:
        """A function reads a source through one mapping; one that is being deleted counts no longer."""
        asked = json.loads(request.body)
        function, source = asked["FunctionName"], asked.get("EventSourceArn")
        name = function.rpartition(":function:")[2]
        found = self._asked("lambda", "list_event_source_mappings", call)["EventSourceMappings"] if source else ()
        for mapping in found:
            is_same = mapping["FunctionArn"].rpartition(":function:")[2] == name
            if is_same and mapping.get("EventSourceArn") == source and mapping.get("State") != "Deleting":
                reason = f"An event source mapping with {source} and {name} exists; its UUID is {mapping['UUID']}"
                return Answer(409, "ResourceConflictException", reason)
        return None

    def subnet(self, call: Call, request: Message) -> Answer | None:
        """The subnets of a VPC do not overlap."""
        asked = dict(parse_qsl(request.body.decode()))
        if not (block := asked.get("CidrBlock")):
            return None
        wanted = ipaddress.ip_network(block)
        subnets = self._asked("ec2", "describe_subnets", call)["Subnets"]
        held = [item["CidrBlock"] for item in subnets if item["VpcId"] == asked.get("VpcId")]
        if any(wanted.overlaps(ipaddress.ip_network(other)) for other in held):
            return Answer(400, "InvalidSubnet.Conflict", f"The CIDR '{block}' conflicts with another subnet")
        return None

    def network_route(self, call: Call, request: Message) -> Answer | None:
        """A route table has one route to a destination."""
        asked = dict(parse_qsl(request.body.decode()))
        block = asked.get("DestinationCidrBlock")
        tables = self._asked("ec2", "describe_route_tables", call)["RouteTables"]
        for table in tables:
            if table["RouteTableId"] != asked.get("RouteTableId"):
                continue
            if block and any(route.get("DestinationCidrBlock") == block for route in table["Routes"]):
                return Answer(400, "RouteAlreadyExists", f"The route identified by {block} already exists.")
        return None

    def _asked(self, service: str, operation: str, call: Call, **parameters: str) -> dict[str, Any]:
        client = _client(self._url, self._account, service, call.named.region or "us-east-1")
        answer: dict[str, Any] = getattr(client, operation)(**parameters)
        return answer


def _api_of(call: Call) -> str:
    return call.named.path.split("/")[3]


@functools.cache
def _client(url: str, account: str, service: str, region: str) -> object:
    import botocore.session

    return botocore.session.Session().create_client(
        service,
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=account,
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )
