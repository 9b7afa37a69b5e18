"""The parsers of everything that is read from outside, each with inputs to begin with and what it may answer.

A parser is called with bytes. It may take them, or raise one of the errors that its documentation names. What was
taken must then hold together: an object that is written and read again is the same object.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.seeds import FUNCTIONS, PARAMETERS, SETTINGS

from stackhold.cli.parameters import read_parameters
from stackhold.cli.settings import FILE_NAME, load_settings
from stackhold.engines.cloudformation.template import evaluate, load_assembly, parse_text, references, resolve
from stackhold.engines.cloudformation.template.desired import Inputs
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.errors import InputError, PolicyInvalid, RecordTooNew, RecordUnreadable, TemplateError
from stackhold.model import codec
from stackhold.model.ids import Region, StackName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackhold.model.ids import LogicalId

_ROOT: Final = Path(__file__).resolve().parents[2]
_GOLDEN: Final = _ROOT / "tests" / "golden" / "records"
_KEY: Final = "stackhold/shop/us-east-1/state.json"


class Changed(AssertionError):
    """An object was read, written, and read as another one."""


@dataclass(frozen=True)
class Parser:
    """`parse` takes an input; `refuses` are the errors that it may raise, in a folder that it may write to."""

    name: str
    parse: Callable[[bytes, Path], None]
    refuses: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]


def parsers() -> dict[str, Parser]:
    """All of them, by name."""
    objects = (RecordUnreadable, RecordTooNew)
    stored: tuple[tuple[str, Callable[..., Any], Callable[[Any], bytes], str], ...] = (
        ("record", codec.decode_record, codec.encode_record, "*.state.json"),
        ("lock", codec.decode_lock, codec.encode_lock, "*.lock.json"),
        ("journal", codec.decode_journal, codec.encode_journal, "*.rollback-journal.json"),
        ("run-file", codec.decode_run_file, codec.encode_run_file, "*.run.json"),
        ("run-log", codec.decode_run_log, codec.encode_run_log, "*.events.json"),
        ("exports", codec.decode_exports, codec.encode_exports, "*.exports.json"),
        ("stop-request", codec.decode_stop_request, codec.encode_stop_request, "*.stop-request.json"),
    )
    made = [
        Parser(name, functools.partial(_round_trip, decode, encode), objects, _seeds(_GOLDEN, pattern))
        for name, decode, encode, pattern in stored
    ]
    templates = (*_seeds(_ROOT / "examples", "*.yaml"), FUNCTIONS.encode())
    made += [
        Parser("template-yaml", functools.partial(_template, "t.yaml"), (TemplateError,), templates),
        Parser("template-json", functools.partial(_template, "t.json"), (TemplateError,), _as_json(templates)),
        Parser("parameters-yaml", functools.partial(_parameters, "p.yaml"), (InputError,), PARAMETERS),
        Parser("parameters-json", functools.partial(_parameters, "p.json"), (InputError,), PARAMETERS),
        Parser("settings", _settings, (InputError, PolicyInvalid), SETTINGS),
        Parser("assembly", _assembly, (InputError,), _MANIFESTS),
    ]
    return {parser.name: parser for parser in made}


def _round_trip(decode: Callable[..., Any], encode: Callable[[Any], bytes], data: bytes, _: Path) -> None:
    first = decode(data, key=_KEY)
    written = encode(first)
    second = decode(written, key=_KEY)
    if encode(second) != written:
        raise Changed(f"written as {written[:300]!r}, then as {encode(second)[:300]!r}")


def _template(file: str, data: bytes, _: Path) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    desired = evaluate(parse_text(text, file=file), _INPUTS)
    for resource in desired.resources.values():
        references(resource.properties)
        resolve(resource.properties, _known)
        resolve(resource.properties, _unknown)
    for output in desired.outputs.values():
        resolve(output.value, _known)


def _parameters(file: str, data: bytes, folder: Path) -> None:
    path = folder / file
    path.write_bytes(data)
    found = read_parameters(path)
    if not all(type(text) is str for pair in found.items() for text in pair):
        raise Changed(f"not all of {found!r} is text")


def _settings(data: bytes, folder: Path) -> None:
    (folder / FILE_NAME).write_bytes(data)
    load_settings({}, environ={}, cwd=folder)


def _assembly(data: bytes, folder: Path) -> None:
    (folder / "manifest.json").write_bytes(data)
    (folder / "Shop.template.json").write_text('{"Resources": {"A": {"Type": "AWS::SQS::Queue"}}}')
    load_assembly(folder)


class _Facts:
    """An account with two zones, in which each SSM parameter is called as it is."""

    def availability_zones(self, region: str) -> list[str]:
        return [f"{region}a", f"{region}b"]

    def ssm_parameter(self, name: str) -> str:
        return name

    def existing(self, type_name: str, values: Sequence[str]) -> frozenset[str]:
        return frozenset(values)


_INPUTS: Final = Inputs(
    stack=StackName("shop"),
    region=Region("eu-west-1"),
    account="123456789012",
    partition="aws",
    url_suffix="amazonaws.com",
    stack_id="arn:aws:cloudformation:eu-west-1:123456789012:stack/shop/0a",
    facts=_Facts(),
)
_MANIFESTS: Final = tuple(
    json.dumps(manifest).encode()
    for manifest in (
        {
            "version": "36.0.0",
            "artifacts": {
                "Shop.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Shop.assets.json"}},
                "Shop": {
                    "type": "aws:cloudformation:stack",
                    "environment": "aws://123456789012/eu-west-1",
                    "properties": {"templateFile": "Shop.template.json", "stackName": "shop", "tags": {"a": "b"}},
                    "dependencies": ["Shop.assets"],
                    "displayName": "Shop",
                    "metadata": {"/Shop/A": [{"type": "aws:cdk:logicalId", "data": "A"}]},
                },
                "Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}},
            },
            "missing": [{"key": "vpc", "provider": "vpc-provider", "props": {"account": "1", "region": "eu-west-1"}}],
        },
        {
            "version": "36.0.0",
            "artifacts": {
                "assembly-Prod": {
                    "type": "cdk:cloud-assembly",
                    "properties": {"directoryName": ".", "displayName": "Prod"},
                }
            },
        },
    )
)


def _known(logical_id: LogicalId, attribute: str | None) -> str:
    return f"{logical_id}.{attribute}"


def _unknown(_: LogicalId, __: str | None) -> object:
    return UNKNOWN


def _seeds(folder: Path, pattern: str) -> tuple[bytes, ...]:
    found = [path.read_bytes() for path in sorted(folder.glob(pattern))]
    assert found, f"there is no {pattern} in {folder}"
    return tuple(found)


def _as_json(templates: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The same templates as JSON, and real ones where they are."""
    import yaml

    class Loader(yaml.BaseLoader):
        pass

    def function(loader: Any, tag: str, node: Any) -> Any:
        value = (
            loader.construct_scalar(node)
            if isinstance(node, yaml.ScalarNode)
            else loader.construct_sequence(node, deep=True)
            if isinstance(node, yaml.SequenceNode)
            else loader.construct_mapping(node, deep=True)
        )
        return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}

    Loader.add_multi_constructor("!", function)
    made = [json.dumps(yaml.load(text, Loader=Loader), indent=1).encode() for text in templates]
    cases = os.environ.get("STACKHOLD_CASES")
    return (*made, *(_seeds(Path(cases), "*.template.json") if cases else ()))
