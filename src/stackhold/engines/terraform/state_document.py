"""What a Terraform state knows, as far as the engine must: which ids it records under which address. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackhold.engines.terraform.diagnostics import Touched


def recorded_ids(state: bytes) -> Mapping[str, frozenset[str]]:
    """Per address of a managed resource the ids that the state has for it, deposed objects included.

    Raises `InputError` for what is no readable state of format 4.
    """
    if not state.strip():
        return {}
    try:
        document = json.loads(state)
        resources = document.get("resources") or []
        found: dict[str, set[str]] = {}
        for resource in resources:
            if resource.get("mode") != "managed":
                continue
            for instance in resource.get("instances") or []:
                ids = found.setdefault(_address(resource, instance), set())
                identity = (instance.get("attributes") or {}).get("id")
                if identity is not None:
                    ids.add(str(identity))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(f"the state that the backend holds cannot be read: {error}") from error
    return {address: frozenset(ids) for address, ids in found.items()}


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Something that a step made, or may have made, and that the state does not know."""

    address: str
    identity: str
    """Its id; empty when the step was killed before it said so."""

    @property
    def is_certain(self) -> bool:
        """Whether it was made for certain."""
        return bool(self.identity)

    def sentence(self, command: str, *, by_block: bool = False) -> str:
        """For people, with what takes it on: a command, or where none reaches the state a block for the module."""
        identity = self.identity or "ID"
        address = _quoted(self.address)
        how = f"{command} import {address} {_quoted(identity) if self.is_certain else identity}"
        if by_block:
            how = _import_block(self.address, identity)
        if self.is_certain:
            how = f"put into the module {how}" if by_block else how
            return f"{self.address} was made as {self.identity}: {how}"
        return f"{self.address} may have been made; look for it, and take it on with: {how}"


def _quoted(word: str) -> str:
    """For a shell."""
    return "'" + word.replace("'", "'\\''") + "'"


def _import_block(address: str, identity: str) -> str:
    text = json.dumps(identity, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
    return f"import {{\n    to = {address}\n    id = {text}\n  }}"


def unrecorded(touched: Iterable[Touched], recorded: Mapping[str, frozenset[str]]) -> tuple[Unrecorded, ...]:
    """What the stream of a step says was created, or begun to be, and the state does not have."""
    events = list(touched)
    former = _ids_that_go(events)
    found = [_judged(each, recorded, former) for each in events if each.action == "create"]
    return tuple(each for each in found if each is not None)


def _judged(
    touched: Touched, recorded: Mapping[str, frozenset[str]], former: Mapping[str, set[str]]
) -> Unrecorded | None:
    known = recorded.get(touched.address)
    match touched.touch.value:
        case "done" if touched.id_value and (known is None or touched.id_value not in known):
            return Unrecorded(touched.address, touched.id_value)
        case "done" if not touched.id_value and known is None:
            return Unrecorded(touched.address, "")
        case "started" if known is None or not known - former.get(touched.address, set()):
            return Unrecorded(touched.address, "")
        case _:
            return None


def _ids_that_go(events: Sequence[Touched]) -> dict[str, set[str]]:
    """The ids of what is being replaced: that the state still has one of these proves nothing about the new one."""
    found: dict[str, set[str]] = {}
    for each in events:
        if each.action == "delete" and each.id_value:
            found.setdefault(each.address, set()).add(each.id_value)
    return found


def _address(resource: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    module = resource.get("module")
    address = f"{resource['type']}.{resource['name']}" if "name" in resource and "type" in resource else ""
    key = instance.get("index_key")
    index = "" if key is None else f"[{json.dumps(key, ensure_ascii=False)}]"
    return f"{module}.{address}{index}" if module else f"{address}{index}"
