"""Where a resource is, written down for a run that may have to look for it: values, and references to other resources.

References are written as a template writes them, and resolved when somebody looks, since their targets may not exist
yet when they are written. The digest tells whether two templates ask for the very same create. Pure.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.values import AttrOf, Base64Of, JoinOf, RefTo, SelectOf, SplitOf
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import TypeName


def place_of(handler: Handler, raw: Props, resolved: Props) -> Props:
    """What the handler must know to look, of the properties as the template has them and as far as they are known.

    A name that the template chose and that is not known yet belongs to it.
    """
    best = {name: raw.get(name, value) if has_unknown(value) else value for name, value in resolved.items()}
    found = handler.place(best)
    name = handler.name_rule.property if handler.name_rule else ""
    if name in best and has_unknown(resolved[name]):
        found = {**found, name: best[name]}
    return {key: encoded(value) for key, value in found.items()}


def encoded(value: Any) -> Any:
    """A value with its references as JSON."""
    match value:
        case dict():
            return {key: encoded(item) for key, item in value.items()}
        case list() | tuple():
            return [encoded(item) for item in value]
        case RefTo(logical_id):
            return {"Ref": logical_id}
        case AttrOf(logical_id, attribute):
            return {"Fn::GetAtt": [logical_id, attribute]}
        case JoinOf(delimiter, parts):
            return {"Fn::Join": [delimiter, encoded(parts)]}
        case SelectOf(index, items):
            return {"Fn::Select": [encoded(index), encoded(items)]}
        case SplitOf(delimiter, text):
            return {"Fn::Split": [delimiter, encoded(text)]}
        case Base64Of(text):
            return {"Fn::Base64": encoded(text)}
        case _:
            return value


def decoded(value: Any) -> Any:
    """The same with its references as expressions again."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(key, inner)] = value.items()
        match key, inner:
            case "Ref", str():
                return RefTo(LogicalId(inner))
            case "Fn::GetAtt", [str() as logical_id, str() as attribute]:
                return AttrOf(LogicalId(logical_id), attribute)
            case "Fn::Join", [str() as delimiter, parts]:
                return JoinOf(delimiter, decoded(parts))
            case "Fn::Select", [index, items]:
                return SelectOf(decoded(index), decoded(items))
            case "Fn::Split", [str() as delimiter, text]:
                return SplitOf(delimiter, decoded(text))
            case "Fn::Base64", text:
                return Base64Of(decoded(text))
    return {key: decoded(item) for key, item in value.items()}


def digest_of(type_name: TypeName, raw: Props, stack_tags: Mapping[str, str]) -> str:
    """Of what a create asks for, as the template has it: equal ones send the same while what they name is the same."""
    asked = [type_name, encoded(raw), sorted(stack_tags.items())]
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
