"""Distils CloudFormation's resource schemas into the compact file that is packaged beside `schema.py`.

Source: the schema files of cfn-lint (`cfnlint/data/schemas`), us-east-1. Data licence: MIT No Attribution (MIT-0),
Copyright Amazon.com, Inc. or its affiliates; the original is at https://github.com/aws-cloudformation/cfn-lint.
Kept is what planning needs: which changes replace, what is read-only or write-only, whether there are handlers, how
tags work, and the shape of the properties. Texts, patterns and limits are left out. Run with `make schemas`.

The file's layout is described in `schema.py`, which reads it. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import cfnlint
from cfnlint.schema import _getatts

REGION: Final = "us-east-1"
MAGIC: Final = "stackhold-schemas-1"
TARGET: Final = Path(__file__).parents[1] / "src/stackhold/engines/cloudformation/schemas.bin"
_POINTERS: Final = {
    "createOnlyProperties": "create",
    "conditionalCreateOnlyProperties": "conditional",
    "readOnlyProperties": "read",
    "writeOnlyProperties": "write",
    "primaryIdentifier": "id",
}
_LEAVES: Final = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}
_SCALARS: Final = ("string", "number", "integer", "boolean")
"""A map whose values may be any of these holds text: the service takes no other."""
_ANY: Final = "*"
_DOCUMENT: Final = "d"
_MAP: Final = "o"
_WINDOW: Final = 32_000


def source() -> Path:
    """Where the installed cfn-lint keeps its schemas."""
    return Path(cfnlint.__file__).parent / "data" / "schemas"


def distil_all() -> dict[str, dict[str, Any]]:
    """Every type of the region with its distilled schema, by name."""
    folder = source()
    hashes = json.loads((folder / "providers" / f"{REGION}.json").read_bytes())
    return {
        name: distil(json.loads((folder / "resources" / f"{hashes[name]}.json").read_bytes()))
        for name in sorted(hashes)
    }


def distil(schema: dict[str, Any]) -> dict[str, Any]:
    """What planning needs of one schema, under short keys; an absent key means none."""
    shapes = _Shapes(schema)
    made: dict[str, Any] = {
        short: [pointer.removeprefix("/properties/") for pointer in schema[key]]
        for key, short in _POINTERS.items()
        if schema.get(key)
    }
    if "handlers" in schema:
        made["handlers"] = 2 if "update" in schema["handlers"] else 1
    if schema.get("replacementStrategy") == "delete_then_create":
        made["deleteFirst"] = 1
    if tags := _tagging(schema):
        made["tags"] = tags
    if schema.get("propertyTransform"):
        made["transform"] = {
            pointer.removeprefix("/properties/"): _form(pointer, text)
            for pointer, text in sorted(schema["propertyTransform"].items())
        }
    if schema.get("required"):
        made["required"] = sorted(schema["required"])
    made |= _attributes(schema["typeName"])
    made["properties"] = {name: shapes.of(node) for name, node in sorted(schema["properties"].items())}
    if schema.get("patternProperties") or schema.get("additionalProperties") is not False:
        made["open"] = 1
    if shapes.used:
        made["definitions"] = dict(sorted(shapes.used.items()))
    if defaults := shapes.defaults():
        made["defaults"] = defaults
    return made


def encode(schemas: dict[str, dict[str, Any]], version: str) -> bytes:
    """The packaged file: a line of facts, the index, a shared dictionary, then one deflated entry per type."""
    texts = {name: _compact(schema) for name, schema in schemas.items()}
    shared = _shared_dictionary(texts)
    entries: list[bytes] = []
    index: list[str] = []
    offset = 0
    for name, text in texts.items():
        entry = _deflate(text, shared)
        index.append(f"{name} {offset} {len(entry)}")
        offset += len(entry)
        entries.append(entry)
    packed_index = _deflate("\n".join(index).encode(), b"")
    packed_shared = _deflate(shared, b"")
    head = f"{MAGIC} {version} {len(packed_index)} {len(packed_shared)}\n".encode()
    return b"".join([head, packed_index, packed_shared, *entries])


def main() -> int:
    """Write the packaged file and say how big it is."""
    data = encode(distil_all(), metadata.version("cfn-lint"))
    TARGET.write_bytes(data)
    sys.stdout.write(f"{TARGET.name}: {len(data):,} bytes\n")
    return 0


class _Shapes:
    """Turns the property schemas of one type into shapes: a letter, `#definition`, or a one-key list or map."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._definitions: dict[str, Any] = schema.get("definitions", {})
        self._schema = schema
        self.used: dict[str, Any] = {}

    def of(self, node: dict[str, Any]) -> Any:
        """The shape of one property, list item or map value."""
        if isinstance(reference := node.get("$ref"), str):
            return self._reference(reference)
        if "type" not in node and "properties" not in node and (branches := self._branches(node)):
            shapes = [self.of(branch) for branch in branches]
            if any(shape != shapes[0] for shape in shapes) and not all(self._is_object(shape) for shape in shapes):
                return _ANY
            if not self._is_object(shapes[0]):
                return shapes[0]
        kinds = node.get("type", [])
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        properties, closed = self._members(node)
        if kinds == {"object", "string"} and not properties:
            return _DOCUMENT
        if "items" in node or kinds == {"array"}:
            return self._array(node, kinds)
        if properties and kinds <= {"object"}:
            return {"p": dict(sorted(properties.items())), **({} if closed else {"open": 1})}
        if len(kinds) == 1:
            return self._single(node, next(iter(kinds)))
        return _ANY

    def defaults(self) -> dict[str, Any]:
        """Default values by dotted pointer, outside of lists."""
        found: dict[str, Any] = {}
        self._collect_defaults(self._schema, "", found, frozenset())
        return dict(sorted(found.items()))

    def _reference(self, reference: str) -> Any:
        name = reference.removeprefix("#/definitions/")
        if name not in self._definitions:
            return _ANY
        if name not in self.used:
            self.used[name] = _ANY
            self.used[name] = self.of(self._definitions[name])
        return f"#{name}"

    def _array(self, node: dict[str, Any], kinds: set[str]) -> Any:
        if not kinds <= {"array"}:
            return _ANY
        item = self.of(node["items"]) if isinstance(node.get("items"), dict) else _ANY
        return {"m" if node.get("insertionOrder") is False else "a": item}

    def _single(self, node: dict[str, Any], kind: str) -> Any:
        if kind != "object":
            return _LEAVES.get(kind, _ANY)
        values = node.get("patternProperties") or {}
        if len(values) != 1:
            return _MAP
        value = next(iter(values.values()))
        if set(_SCALARS) <= set(value.get("type", ())):
            return {"v": "s"}
        return {"v": self.of(value)}

    def _members(self, node: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The members of an object, those of its alternatives included; and whether others are refused."""
        members = {name: self.of(child) for name, child in (node.get("properties") or {}).items()}
        closed = node.get("additionalProperties") is False and not node.get("patternProperties")
        branches = self._branches(node)
        for branch in branches:
            inner, _ = self._members(self._target(branch))
            for name, shape in inner.items():
                members[name] = shape if members.get(name, shape) == shape else _ANY
        if branches and "properties" not in node:
            closed = all(self._target(branch).get("additionalProperties") is False for branch in branches)
        return members, closed

    def _branches(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """The alternatives of a node that say what a value looks like; those that only restrict it are left out."""
        return [
            branch
            for key in ("anyOf", "oneOf", "allOf")
            for branch in node.get(key) or []
            if isinstance(branch, dict) and branch.keys() & {"properties", "$ref", "type", "items"}
        ]

    def _target(self, node: dict[str, Any]) -> dict[str, Any]:
        """A node, or the definition that it refers to."""
        name = str(node.get("$ref", "")).removeprefix("#/definitions/")
        found: dict[str, Any] = self._definitions.get(name, node)
        return found

    def _is_object(self, shape: Any) -> bool:
        if isinstance(shape, str) and shape.startswith("#"):
            shape = self.used[shape[1:]]
        return isinstance(shape, dict) and "p" in shape

    def _collect_defaults(self, node: Any, path: str, found: dict[str, Any], seen: frozenset[str]) -> None:
        if not isinstance(node, dict):
            return
        if path and "default" in node:
            found[path] = node["default"]
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.removeprefix("#/definitions/")
            if name not in seen:
                self._collect_defaults(self._definitions.get(name), path, found, seen | {name})
        for name, child in (node.get("properties") or {}).items():
            self._collect_defaults(child, f"{path}/{name}" if path else name, found, seen)


def _attributes(name: str) -> dict[str, Any]:
    """What `Fn::GetAtt` may name beside the read-only properties: every property, or a few."""
    if name in _getatts._all_property_types:
        return {"attributes": "*"}
    extra = _getatts._exceptions.get(name)
    return {"attributes": sorted(extra)} if extra else {}


def _form(pointer: str, transform: str) -> str:
    """In which ways AWS rewrites a value, out of those that a comparison can follow; `unknown` for the others."""
    if "cidr" in pointer.lower():
        return "cidr"
    name = pointer.rsplit("/", 1)[-1]
    forms: set[str] = set()
    for alternative in (part.strip() for part in transform.split("$OR")):
        path = rf"(?:\w+\.)*{re.escape(name)}"
        if re.fullmatch(path, alternative):
            continue
        if re.fullmatch(rf"\$(?:lower|upper)case\({path}\)", alternative):
            forms.add("case")
        elif re.fullmatch(
            rf"""\$split\({path}, *['"][^'"]+['"]\)\[-1\]|\$substringAfter\({path}, *"/"\)""", alternative
        ) or re.fullmatch(rf"""\$join\(\["\^?(?:\(?arn).*", {path}\]\)""", alternative):
            forms.add("tail")
        else:
            forms.add("unknown")
    return " ".join(sorted(forms)) or "case"


def _tagging(schema: dict[str, Any]) -> dict[str, Any]:
    """How the type takes tags; empty when it takes none."""
    tagging = schema.get("tagging") or {}
    pointer = tagging.get("tagProperty") or ("/properties/Tags" if "Tags" in schema["properties"] else "")
    if tagging.get("taggable", schema.get("taggable", bool(pointer))) is False:
        return {}
    if not pointer:
        return {}
    return {
        "property": pointer.removeprefix("/properties/"),
        "updatable": int(tagging.get("tagUpdatable", True)),
        "system": int(tagging.get("cloudFormationSystemTags", True)),
        **({"valued": 1} if _needs_value(schema, pointer) else {}),
    }


def _needs_value(schema: dict[str, Any], pointer: str) -> bool:
    """Whether each of a list of tags must have a value."""
    tags = schema["properties"].get(pointer.removeprefix("/properties/"), {})
    return "Value" in _referred(schema, _referred(schema, tags).get("items", {})).get("required", ())


def _referred(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The node that a reference leads to."""
    while isinstance(reference := node.get("$ref"), str):
        node = schema
        for part in reference.split("/")[1:]:
            node = node[part]
    return node


def _shared_dictionary(texts: dict[str, bytes]) -> bytes:
    """Text that many entries repeat, the most useful last: it lets small entries be packed well."""
    counts: dict[bytes, int] = {}
    for text in texts.values():
        for piece in set(text.replace(b"},", b"},\n").replace(b',"', b',\n"').split(b"\n")):
            counts[piece] = counts.get(piece, 0) + 1
    worth = sorted(counts, key=lambda piece: (counts[piece] * len(piece), piece))
    kept = [piece for piece in worth if counts[piece] > 3]
    return b"".join(kept)[-_WINDOW:]


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def _deflate(data: bytes, shared: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, shared)
    return packer.compress(data) + packer.flush()


if __name__ == "__main__":
    sys.exit(main())
