"""What a Terraform state says of itself: lineage, serial, format. Pure; nothing of what is in it is decoded.

Only format 4 is taken. A state that OpenTofu has encrypted shows its lineage and serial beside what is sealed; the
serial is sealed in too, so that it cannot be changed from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from stackhold.errors import InputError

FORMAT: Final = 4
_MANAGED: Final = "managed"


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What a state says of itself."""

    lineage: str
    serial: int
    terraform_version: str = ""
    """Of the runtime that wrote it; empty when it is encrypted."""
    resources: int | None = None
    """How many objects it manages; None when it is encrypted."""

    @property
    def is_encrypted(self) -> bool:
        """Whether its content is sealed."""
        return self.resources is None


class _Resource(msgspec.Struct):
    mode: str = _MANAGED
    instances: list[msgspec.Raw] | None = None


class _State(msgspec.Struct):
    lineage: str = ""
    serial: int = 0
    version: int | None = None
    terraform_version: str = ""
    resources: list[_Resource] | None = None
    encrypted_data: str | None = None


def facts_of(data: bytes, *, what: str = "the state") -> StateFacts:
    """What a state says of itself; raises `InputError`, which speaks of it as `what`, for one that is not taken."""
    state = _decoded(data, what)
    if state.encrypted_data is not None:
        return StateFacts(state.lineage, state.serial)
    if state.version is None:
        raise InputError(f"{what} is no Terraform state: it names no format")
    if state.version != FORMAT:
        raise InputError(
            f"{what} has format {state.version}; format {FORMAT} is the one that is read and written",
            hint="Nothing was changed. Use a release of stackhold that knows it."
            if state.version > FORMAT
            else "Nothing was changed. Let the runtime upgrade it first.",
        )
    managed = (each for each in state.resources or () if each.mode == _MANAGED)
    return StateFacts(
        state.lineage,
        state.serial,
        state.terraform_version,
        sum(len(each.instances or ()) for each in managed),
    )


def serial_of(data: bytes, *, what: str = "the state") -> tuple[str, int]:
    """Lineage and serial; raises `InputError` for a state that is not taken."""
    facts = facts_of(data, what=what)
    return facts.lineage, facts.serial


def renumbered(data: bytes, *, serial: int) -> bytes:
    """The same state with another serial, everything else as it is; an encrypted one stays wholly as it is."""
    if facts_of(data).is_encrypted:
        return data
    document = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    document["serial"] = msgspec.Raw(str(serial).encode())
    return msgspec.json.encode(document)


def _decoded(data: bytes, what: str) -> _State:
    if not data.strip():
        raise InputError(f"{what} is empty")
    try:
        return msgspec.json.decode(data, type=_State)
    except msgspec.ValidationError as error:
        raise InputError(f"{what} is no Terraform state: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{what} is no JSON: {error}") from error
