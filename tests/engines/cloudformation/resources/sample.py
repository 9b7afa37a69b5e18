"""What the conformance suite knows of one type: data, no test code.

A file in `samples/` holds the samples of one service in a tuple `SAMPLES`; the suite finds it by itself. What a
sample needs beside itself (a topic for a subscription) is made by `prepare`, which returns what the properties
are made from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Given = Mapping[str, Any]
"""What `prepare` made: names, ARNs, ids."""
Client = Callable[[str], Any]
"""A boto3 client of the emulator, by service."""


@dataclass(frozen=True)
class Sample:
    """One resource in its life: made, changed in place, with properties removed, deleted."""

    type: str
    properties: Callable[[Given], dict[str, Any]]
    """Declared at first. Without tags when the type has none."""
    count: Callable[[Client, Given], int]
    """How many of this type are in the account, asked through boto3; what `prepare` made is in `Given`."""
    update: Callable[[Given], dict[str, Any]] = lambda _: {}
    """An in-place change, laid over the properties."""
    remove: tuple[str, ...] = ()
    """Properties taken out after that: each must go back to its default."""
    prepare: Callable[[Client], Given] | None = None
    """Makes what the resource needs beside itself."""
    attributes: frozenset[str] = frozenset()
    """All names that `Fn::GetAtt` may ask for."""
    ref: Callable[[str, Given], Any] = lambda physical_id, _: physical_id
    """What `Ref` must give."""
    tags: Callable[[Client, str, Given], Mapping[str, str]] | None = None
    """The tags as AWS has them, through boto3, ownership tags included; None for a type without tags."""
    name: str = ""
    """Tells samples of one type apart."""
    emulators: tuple[str, ...] = ("ministack", "moto")
    blind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By emulator: properties that it forgets, so that a read cannot give them back. `Ownership` in it: it drops
    the tags of the create call. `Reset:X`: it keeps property X however it is reset."""

    @property
    def label(self) -> str:
        """The test's id."""
        return self.type.removeprefix("AWS::").replace("::", "-") + (f"-{self.name}" if self.name else "")
