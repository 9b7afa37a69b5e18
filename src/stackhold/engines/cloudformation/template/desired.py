"""What a template asks for, once parameters, conditions and mappings are worked out: plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stackhold.model.ids import LogicalId, Region, StackName, TypeName

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.values import Props


class Facts(Protocol):
    """What evaluation must ask the account, when a template needs it."""

    def availability_zones(self, region: str) -> list[str]:
        """Sorted; zones with a default subnet if any, else all (spec 3a)."""
        ...

    def ssm_parameter(self, name: str) -> str:
        """The value of a plain (never SecureString) SSM parameter; raises `AwsError`."""
        ...

    def existing(self, type_name: str, values: Sequence[str]) -> frozenset[str]:
        """Those of the values that the account has of an AWS-specific parameter type; raises `AwsError`."""
        ...


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a template is evaluated with."""

    stack: StackName
    region: Region
    account: str
    partition: str
    url_suffix: str
    stack_id: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Given with `--parameter`."""
    recorded_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Used where none is given and the template still has it, before its default (as `cdk deploy` does)."""
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class DesiredResource:
    """One resource to have. `properties` and `metadata` may hold expressions (`values.py`)."""

    logical_id: LogicalId
    type: TypeName
    properties: Props
    depends_on: tuple[LogicalId, ...] = ()
    """Only those that exist (an absent one was dropped with a warning)."""
    deletion_policy: str | None = None
    update_replace_policy: str | None = None
    metadata: Any = None
    line: int = 0
    """Where its logical id stands, from 1; 0 when unknown."""
    property_lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Where each of its properties stands."""


@dataclass(frozen=True, slots=True)
class DesiredOutput:
    """One output. `value` may hold expressions; `export` likewise, None without one."""

    name: str
    value: Any
    export: Any = None


@dataclass(frozen=True, slots=True)
class DesiredStack:
    """One stack to have."""

    stack: StackName
    region: Region
    resources: Mapping[LogicalId, DesiredResource]
    outputs: Mapping[str, DesiredOutput] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Effective values by name: what the record keeps."""
    warnings: tuple[str, ...] = ()
    file: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    reused_parameters: tuple[str, ...] = ()
    """Those whose value comes from the record, since none was given."""


Edges = Mapping[LogicalId, frozenset[LogicalId]]
"""For each resource those that it depends on: Ref, GetAtt, Sub, DependsOn, from Properties and Metadata."""
Check = Callable[[TypeName, str], bool]
"""Whether a type has an attribute: GetAtt of another is an error before the first call."""
