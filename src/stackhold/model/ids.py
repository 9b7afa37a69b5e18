"""The names of things. Each is a `NewType`, so that one cannot be passed where another is meant."""

from __future__ import annotations

import re
from typing import NewType

from stackhold.errors import InputError

StackName = NewType("StackName", str)
Region = NewType("Region", str)
LogicalId = NewType("LogicalId", str)
"""A resource's name in its template."""
PhysicalId = NewType("PhysicalId", str)
"""The name that the cloud gave, or took from us."""
TypeName = NewType("TypeName", str)
"""A resource type, such as `AWS::S3::Bucket`."""
RunId = NewType("RunId", str)
"""One attempt to change a stack: `YYYYMMDDTHHMMSSmmmZ-<8 hex>`; sorts by time."""
LockId = NewType("LockId", str)
"""A nonce per acquisition of a lock; never reused, never derived."""

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d{1,2}")
_WORKSPACE = re.compile(r"[A-Za-z0-9_.~-]{1,90}")
_KEPT_NAMES = frozenset({".", "..", ".lock", "backups", "events"})


def stack_name(text: str, *, hint: str = "") -> StackName:
    """Check a stack's name before it becomes a key or a path; raises `InputError` with the hint given.

    CloudFormation's own rule: a letter, then letters, digits and hyphens, 128 in all.
    """
    if not _STACK_NAME.fullmatch(text):
        raise InputError(
            f"{text!r} is no stack name: a letter, then letters, digits and hyphens, at most 128 characters",
            hint=hint,
        )
    return StackName(text)


def region_name(text: str) -> Region:
    """Check a region's name before it becomes a key or a path; raises `InputError`."""
    if not _REGION.fullmatch(text):
        raise InputError(f"{text!r} is no region", hint="Name one with --region, such as --region eu-west-1.")
    return Region(text)


def workspace_name(text: str) -> Region:
    """Check a Terraform workspace's name before it becomes a key or a path; raises `InputError`.

    It stands where a stack of AWS has its region. A stack of AWS may be called as the folder of all Terraform stacks
    is, and one of those as a region: so no workspace has the name of an object that a stack keeps beside its record.
    """
    if not _WORKSPACE.fullmatch(text):
        raise InputError(f"{text!r} is no workspace: letters, digits and any of -_.~, at most 90 characters")
    if text in _KEPT_NAMES or text.startswith(".tmp-") or text.endswith(".json"):
        raise InputError(f"a workspace called {text!r} cannot be kept in a store: that name has a use of its own there")
    return Region(text)
