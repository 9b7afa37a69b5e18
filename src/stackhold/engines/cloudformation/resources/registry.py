"""Which native handler serves a type.

A table from type to `module:Class`, so that a run imports only the services that its template names. A type
that is not here goes to Cloud Control, as does a resource with a property that its handler does not send;
both are decided by the caller.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.resources.handler import Handler
from stackhold.errors import Bug
from stackhold.model.ids import TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

_HANDLERS: Final[Mapping[str, str]] = {
    "AWS::ApiGatewayV2::Api": "apigatewayv2:Api",
    "AWS::ApiGatewayV2::Integration": "apigatewayv2_routes:Integration",
    "AWS::ApiGatewayV2::Route": "apigatewayv2_routes:Route",
    "AWS::ApiGatewayV2::Stage": "apigatewayv2:Stage",
    "AWS::DynamoDB::Table": "dynamodb:Table",
    "AWS::EC2::EIP": "ec2_gateways:Eip",
    "AWS::EC2::InternetGateway": "ec2_network:InternetGateway",
    "AWS::EC2::NatGateway": "ec2_gateways:NatGateway",
    "AWS::EC2::Route": "ec2_routing:Route",
    "AWS::EC2::RouteTable": "ec2_routing:RouteTable",
    "AWS::EC2::Subnet": "ec2_network:Subnet",
    "AWS::EC2::SubnetRouteTableAssociation": "ec2_routing:SubnetRouteTableAssociation",
    "AWS::EC2::VPC": "ec2_network:Vpc",
    "AWS::EC2::VPCEndpoint": "ec2_gateways:VpcEndpoint",
    "AWS::EC2::VPCGatewayAttachment": "ec2_network:VpcGatewayAttachment",
    "AWS::Events::Rule": "events:Rule",
    "AWS::IAM::Policy": "iam:Policy",
    "AWS::IAM::Role": "iam:Role",
    "AWS::Lambda::EventSourceMapping": "lambda_:EventSourceMapping",
    "AWS::Lambda::Function": "lambda_:Function",
    "AWS::Lambda::Permission": "lambda_:Permission",
    "AWS::Logs::LogGroup": "logs:LogGroup",
    "AWS::S3::Bucket": "s3:Bucket",
    "AWS::SNS::Subscription": "sns:Subscription",
    "AWS::SNS::Topic": "sns:Topic",
    "AWS::SQS::Queue": "sqs:Queue",
    "AWS::SQS::QueuePolicy": "sqs:QueuePolicy",
    "AWS::SSM::Parameter": "ssm:Parameter",
}


def native_types() -> tuple[TypeName, ...]:
    """Every type that has a native handler, sorted."""
    return tuple(TypeName(name) for name in sorted(_HANDLERS))


@functools.cache
def handler_for(type_name: TypeName) -> Handler | None:
    """The native handler of a type, imported when first asked for; None when there is none."""
    place = _HANDLERS.get(type_name)
    if place is None:
        return None
    module, _, name = place.partition(":")
    found = getattr(importlib.import_module(f"{__package__}.{module}"), name)()
    if not isinstance(found, Handler) or found.type != type_name:
        raise Bug(f"the registry names {place} for {type_name}, which is a handler of something else")
    return found
