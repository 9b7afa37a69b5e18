"""The exports index of one region: output values by export name. An index, never the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.ids import Region, StackName
    from stackhold.model.values import Json, JsonMap

INDEX_VERSION = 1


@dataclass(frozen=True, slots=True)
class Export:
    """One exported value and the stack that produces it."""

    value: Json
    producer_stack: StackName
    producer_region: Region
    extra: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportsIndex:
    """`_index/<region>/exports.json`."""

    region: Region
    exports: Mapping[str, Export] = field(default_factory=dict)
    last_modified: Instant = Instant(0)
    version: int = INDEX_VERSION
    extra: JsonMap = field(default_factory=dict)
