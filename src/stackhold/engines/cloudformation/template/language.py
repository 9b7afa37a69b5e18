"""Which words of the template language exist, and which of them this release works out.

Everything that CloudFormation knows and we do not is refused by name, before the first call.
"""

from __future__ import annotations

import re
from typing import Final

SECTIONS: Final = frozenset(
    (
        "AWSTemplateFormatVersion",
        "Description",
        "Metadata",
        "Parameters",
        "Rules",
        "Mappings",
        "Conditions",
        "Resources",
        "Outputs",
    )
)
REFUSED_SECTIONS: Final = {
    "Transform": "transforms and macros are not supported",
    "Hooks": "hooks are not supported",
    "Globals": "the AWS SAM transform is not supported",
}
RESOURCE_KEYS: Final = frozenset(
    [
        "Type",
        "Properties",
        "DependsOn",
        "Condition",
        "DeletionPolicy",
        "UpdateReplacePolicy",
        "Metadata",
        "UpdatePolicy",
        "Description",
    ]
)
PARAMETER_KEYS: Final = frozenset(
    [
        "Type",
        "Default",
        "Description",
        "AllowedValues",
        "AllowedPattern",
        "ConstraintDescription",
        "MinLength",
        "MaxLength",
        "MinValue",
        "MaxValue",
        "NoEcho",
    ]
)
OUTPUT_KEYS: Final = frozenset(["Value", "Description", "Export", "Condition"])

VALUE_FUNCTIONS: Final = frozenset(
    (
        "Ref",
        "Fn::GetAtt",
        "Fn::Sub",
        "Fn::Join",
        "Fn::Select",
        "Fn::Split",
        "Fn::GetAZs",
        "Fn::Base64",
        "Fn::FindInMap",
        "Fn::If",
    )
)
CONDITION_FUNCTIONS: Final = frozenset(("Fn::And", "Fn::Or", "Fn::Not", "Fn::Equals", "Condition"))
NOT_IN_CONDITIONS: Final = frozenset(("Fn::GetAtt", "Fn::If"))
REFUSED_FUNCTIONS: Final = frozenset(
    (
        "Fn::ImportValue",
        "Fn::GetStackOutput",
        "Fn::Cidr",
        "Fn::Transform",
        "Fn::Length",
        "Fn::ToJsonString",
        "Fn::Contains",
        "Fn::EachMemberEquals",
        "Fn::EachMemberIn",
        "Fn::RefAll",
        "Fn::ValueOf",
        "Fn::ValueOfAll",
    )
)

PSEUDO_PARAMETERS: Final = frozenset(
    f"AWS::{name}"
    for name in ["AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix"]
)

METADATA_TYPE: Final = "AWS::CDK::Metadata"
METADATA_CONDITION: Final = "CDKMetadataAvailable"
BOOTSTRAP_PARAMETER: Final = "BootstrapVersion"
BOOTSTRAP_RULE: Final = "CheckBootstrapVersion"
DYNAMIC_REFERENCE: Final = "{{resolve:"

FORMAT_VERSION: Final = "2010-09-09"
MAX_BYTES: Final = 1024 * 1024
LIMITS: Final = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}
MAX_VALUE_BYTES: Final = 4096

DELETION_POLICIES: Final = ("Delete", "Retain", "RetainExceptOnCreate", "Snapshot")
REPLACE_POLICIES: Final = ("Delete", "Retain", "Snapshot")
SNAPSHOT_TYPES: Final = frozenset(
    (
        "AWS::DocDB::DBCluster",
        "AWS::EC2::Volume",
        "AWS::ElastiCache::CacheCluster",
        "AWS::ElastiCache::ReplicationGroup",
        "AWS::Neptune::DBCluster",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::Redshift::Cluster",
    )
)

_TYPE: Final = re.compile(r"[A-Za-z0-9]{2,64}(::[A-Za-z0-9]{2,64}){1,3}")
_REFUSED_TYPES: Final = {
    "AWS::CloudFormation::Stack": "nested stacks are not supported",
    "AWS::CloudFormation::CustomResource": "custom resources are not supported",
    "AWS::CloudFormation::Macro": "transforms and macros are not supported",
}


def refused_type(type_name: str) -> str | None:
    """Why a resource of this type cannot be had, whatever its properties; None for all others."""
    if type_name in _REFUSED_TYPES:
        return f"{type_name}: {_REFUSED_TYPES[type_name]}"
    if type_name.startswith("Custom::"):
        return f"{type_name}: custom resources are not supported"
    if type_name.startswith("AWS::Serverless::"):
        return f"{type_name}: the AWS SAM transform is not supported"
    if type_name.endswith("::MODULE"):
        return f"{type_name}: modules are not supported"
    if not _TYPE.fullmatch(type_name):
        return f"{type_name!r} is no resource type"
    return None


def is_function(key: str) -> bool:
    """Whether a map's key names an intrinsic function, known or not, wherever values stand."""
    return key == "Ref" or key.startswith("Fn::")
