"""Where AWS differs from what is recorded: drift.

Declared properties are compared with what a read found, those that the template left open with the baseline. What
AWS never shows, or rewrites in a way that cannot be followed, is named as not compared. AWS adds members of its own
to declared objects; those count only when the baseline has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.coerce import coerce_recorded
from stackhold.engines.cloudformation.documents import canonical, means_the_same_to_aws, parsed, sort_key
from stackhold.engines.cloudformation.meaning import is_same, tag_map, tags_at
from stackhold.engines.cloudformation.plan import ABSENT
from stackhold.engines.cloudformation.schema import ANY, Kind, Pointer, Shape, matches, schema_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.schema import TypeSchema
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import TypeName
    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class DriftDifference:
    """One place where AWS differs; `ABSENT` on the side that has nothing there."""

    path: str
    recorded: Any
    observed: Any


@dataclass(frozen=True, slots=True)
class Observation:
    """One resource compared with AWS."""

    differences: tuple[DriftDifference, ...] = ()
    not_compared: tuple[str, ...] = ()
    """Dotted paths of what is never read back, or read back in another form."""

    @property
    def is_drifted(self) -> bool:
        """Whether anything differs."""
        return bool(self.differences)


def diff_observed(
    type_name: TypeName,
    declared: JsonMap,
    baseline: JsonMap | None,
    seen: JsonMap,
    *,
    handler: Handler | None = None,
) -> Observation:
    """Compare the record's properties, and its baseline where it has one, with what a read found."""
    comparison = _Comparison(schema_for(type_name), handler)
    wanted, there = coerce_recorded(type_name, dict(declared)), coerce_recorded(type_name, dict(seen))
    before = coerce_recorded(type_name, dict(baseline or {}))
    for name, value in wanted.items():
        comparison.top(name, value, there, before)
    for name, value in before.items():
        if name in wanted or comparison.is_read_only((name,)) or (name not in there and _is_nothing(value)):
            continue
        comparison.top(name, value, there, before)
    return Observation(tuple(comparison.differences), tuple(comparison.not_compared))


class _Comparison:
    """Collects what differs and what was not compared."""

    def __init__(self, schema: TypeSchema | None, handler: Handler | None) -> None:
        self._schema = schema
        self._handler = handler
        self._at_tags = tags_at(schema)
        self.differences: list[DriftDifference] = []
        self.not_compared: list[str] = []
        self.rewritten: list[str] = []
        """Those of them that AWS shows, in a form that cannot be followed."""

    def top(self, name: str, value: Any, seen: Props, before: Props) -> None:
        """One property."""
        shape = (self._schema.properties.member(name) if self._schema else None) or ANY
        self._compare(shape, value, seen.get(name, ABSENT), before.get(name, ABSENT), (name,))

    def is_read_only(self, path: Pointer) -> bool:
        """Whether a place is AWS's alone: an attribute, not a property."""
        return self._schema is not None and any(matches(pointer, path) for pointer in self._schema.read_only)

    def _compare(self, shape: Shape, value: Any, seen: Any, before: Any, path: Pointer) -> None:
        if self._is_write_only(path):
            self.not_compared.append(".".join(path))
            return
        if seen is ABSENT and isinstance(value, dict) and self._holds_write_only(path):
            seen = {}
        is_tags = path == self._at_tags
        if is_same(shape, value, seen, is_tags=is_tags) or self._may_be_left_out(value, seen, before, path):
            return
        if is_tags and (tags := tag_map(value)) is not None and (there := tag_map(seen)) is not None:
            self._map(ANY, tags, there, before, path)
        elif shape.kind is Kind.DOCUMENT and seen is not ABSENT:
            self._document(value, seen, path)
        elif isinstance(value, dict) and isinstance(seen, dict):
            self._object(shape, value, seen, before, path)
        elif isinstance(value, list) and isinstance(seen, list):
            self._list(shape, value, seen, before, path)
        else:
            self._scalar(value, seen, before, path)

    def _object(self, shape: Shape, value: Props, seen: Props, before: Any, path: Pointer) -> None:
        if shape.kind is Kind.MAP:
            self._map(shape.item, value, seen, before, path)
            return
        earlier = before if isinstance(before, dict) else {}
        for name in [*value, *(name for name in earlier if name not in value)]:
            if name not in value and self.is_read_only((*path, name)):
                continue
            inner = value.get(name, earlier.get(name))
            member = shape.member(name) or ANY
            self._compare(member, inner, seen.get(name, ABSENT), earlier.get(name, ABSENT), (*path, name))

    def _map(self, item: Shape, value: Props, seen: Props, before: Any, path: Pointer) -> None:
        """A map is declared as a whole: a key that it has not is a difference."""
        earlier = before if isinstance(before, dict) else {}
        for name in [*value, *(name for name in seen if name not in value)]:
            inner, there = value.get(name, ABSENT), seen.get(name, ABSENT)
            if inner is ABSENT:
                self._differ(path=(*path, name), value=ABSENT, seen=there)
            else:
                self._compare(item, inner, there, earlier.get(name, ABSENT), (*path, name))

    def _list(self, shape: Shape, value: list[Any], seen: list[Any], before: Any, path: Pointer) -> None:
        if len(value) != len(seen):
            self._differ(path=path, value=value, seen=seen)
            return
        earlier = before if isinstance(before, list) and len(before) == len(value) else [ABSENT] * len(value)
        if shape.kind is Kind.SET:
            self._set(shape, value, seen, before, path)
            return
        for at, (inner, there, was) in enumerate(zip(value, seen, earlier, strict=True)):
            self._compare(shape.item, inner, there, was, (*path, str(at)))

    def _set(self, shape: Shape, value: list[Any], seen: list[Any], before: Any, path: Pointer) -> None:
        """Each item must find one of its own that has all that it declares, the best match first.

        Where an item matches only because AWS rewrites a part of it, the baseline tells whether it still is the same.
        """
        left = list(seen)
        not_compared: list[str] = []
        is_guessed = False
        for at, inner in enumerate(value):
            trials = [(self._trial(shape.item, inner, there, (*path, str(at))), there) for there in left]
            fitting = [(trial, there) for trial, there in trials if not trial.differences]
            if not fitting:
                self._differ(path=path, value=value, seen=seen)
                return
            best, there = min(fitting, key=lambda pair: len(pair[0].rewritten))
            left.remove(there)
            is_guessed = is_guessed or bool(best.rewritten)
            not_compared += best.not_compared
        if is_guessed and before is not ABSENT:
            if not is_same(shape, before, seen):
                self._differ(path=path, value=value, seen=seen)
            return
        self.not_compared += not_compared

    def _trial(self, shape: Shape, value: Any, seen: Any, path: Pointer) -> _Comparison:
        """One item against another, on the side."""
        trial = _Comparison(self._schema, self._handler)
        trial._compare(shape, value, seen, ABSENT, path)
        return trial

    def _document(self, value: Any, seen: Any, path: Pointer) -> None:
        if means_the_same_to_aws(value, seen):
            return
        one, other = canonical(value), canonical(seen)
        if not isinstance(one, dict) or not isinstance(other, dict):
            self._differ(path=path, value=parsed(value), seen=parsed(seen))
            return
        for name in [*one, *(name for name in other if name not in one)]:
            inner, there = one.get(name, ABSENT), other.get(name, ABSENT)
            if not is_same(ANY, inner, there):
                self._differ(path=(*path, name), value=inner, seen=there)

    def _scalar(self, value: Any, seen: Any, before: Any, path: Pointer) -> None:
        form = self._form(path)
        if form and seen is not ABSENT and _is_rewritten(form, value, seen):
            return
        if "unknown" not in form or (before is not ABSENT and not is_same(ANY, before, seen)):
            self._differ(path=path, value=value, seen=seen)
        elif before is ABSENT:
            self.rewritten.append(".".join(path))
            self.not_compared.append(".".join(path))

    def _differ(self, *, path: Pointer, value: Any, seen: Any) -> None:
        self.differences.append(DriftDifference(".".join(path), value, seen))

    def _is_write_only(self, path: Pointer) -> bool:
        if self._handler is not None and ".".join(path) in self._handler.write_only:
            return True
        return self._schema is not None and any(matches(pointer, path) for pointer in self._schema.write_only)

    def _holds_write_only(self, path: Pointer) -> bool:
        pointers = self._schema.write_only if self._schema else ()
        return any(len(pointer) > len(path) and matches(pointer[: len(path)], path) for pointer in pointers)

    def _may_be_left_out(self, value: Any, seen: Any, before: Any, path: Pointer) -> bool:
        """Whether AWS showing nothing means this value: its default, or an emptiness that it never shows."""
        if seen is not ABSENT:
            return False
        if value in ([], {}, "") and before is ABSENT:
            return True
        return any(sort_key(value) == sort_key(default) for default in self._defaults(path))

    def _defaults(self, path: Pointer) -> list[Any]:
        known: list[Mapping[Any, Any]] = [self._schema.defaults] if self._schema else []
        found = [defaults[path] for defaults in known if path in defaults]
        if self._handler is not None and len(path) == 1 and path[0] in self._handler.defaults:
            found.append(self._handler.defaults[path[0]])
        return found

    def _form(self, path: Pointer) -> str:
        forms = self._schema.transforms if self._schema else {}
        return next((form for pointer, form in forms.items() if matches(pointer, path)), "")


def _is_nothing(value: Any) -> bool:
    """Whether a baseline's value says no more than absence does: empty, zero, off, or made of such only.

    cdkd fills in such values for what AWS does not show.
    """
    if isinstance(value, dict):
        return all(_is_nothing(inner) for inner in value.values())
    return not value


def _is_rewritten(form: str, value: Any, seen: Any) -> bool:
    """Whether AWS shows `value` as `seen` in one of the ways that can be followed."""
    if not isinstance(value, str) or not isinstance(seen, str):
        return False
    one, other = value.lower(), seen.lower()
    if "cidr" in form:
        return _is_same_network(one, other)
    if "tail" in form and _tail(one) == _tail(other):
        return True
    return "case" in form and one == other


def _tail(text: str) -> str:
    """The last part of an ARN, or an id as it is."""
    return text.replace(":", "/").rsplit("/", 1)[-1]


def _is_same_network(one: str, other: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_network(one, strict=False) == ipaddress.ip_network(other, strict=False)
    except ValueError:
        return False
