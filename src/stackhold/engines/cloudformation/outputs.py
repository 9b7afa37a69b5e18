"""Outputs and exports, once every resource that they name is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.template.resolve import as_text, resolve
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.errors import ResourceFailed, TemplateError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.template.desired import DesiredOutput
    from stackhold.engines.cloudformation.values import Lookup


def resolve_outputs(outputs: Mapping[str, DesiredOutput], lookup: Lookup) -> tuple[dict[str, str], dict[str, str]]:
    """Output values by output name, and by export name. Raises `ResourceFailed` for one that has no value."""
    values: dict[str, str] = {}
    exports: dict[str, str] = {}
    for name, output in outputs.items():
        values[name] = _text(output.value, lookup, f"output {name}")
        if output.export is not None:
            exports[_text(output.export, lookup, f"the export name of output {name}")] = values[name]
    return values, exports


def _text(value: Any, lookup: Lookup, what: str) -> str:
    try:
        resolved = resolve(value, lookup)
        if resolved is UNKNOWN:
            raise ResourceFailed(f"{what} has no value: a resource that it names does not exist")
        return as_text(resolved)
    except TemplateError as error:
        raise ResourceFailed(f"{what} has no value: {error.reason}") from error
