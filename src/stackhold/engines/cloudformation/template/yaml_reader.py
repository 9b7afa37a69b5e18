"""YAML as templates use it: short tags, and none of YAML's surprises.

Dates, base-60 numbers and `=` are text; yes, no, on and off are booleans as values and text as keys; nulls,
duplicate keys and unknown tags are errors. Aliases and merge keys are resolved, up to a limit on the whole.
PyYAML only splits the text into events: what a scalar means is decided here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from stackhold.engines.cloudformation.template.json_reader import as_written
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    ListNode,
    MapNode,
    Node,
    Place,
    ScalarNode,
    entry_at,
    number,
)
from stackhold.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRUE: Final = frozenset(["yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE: Final = frozenset(["no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_NUMBER: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*)"
)
_CORE: Final = "tag:yaml.org,2002:"
_BARE_TAGS: Final = frozenset(("Ref", "Condition"))
_TAGS: Final = frozenset(
    [
        "And",
        "Base64",
        "Cidr",
        "Contains",
        "EachMemberEquals",
        "EachMemberIn",
        "Equals",
        "FindInMap",
        "ForEach",
        "GetAtt",
        "GetAZs",
        "GetStackOutput",
        "If",
        "ImportValue",
        "Join",
        "Length",
        "Not",
        "Or",
        "RefAll",
        "Select",
        "Split",
        "Sub",
        "ToJsonString",
        "Transform",
        "ValueOf",
        "ValueOfAll",
    ]
)
"""Every short tag that CloudFormation has; what is not supported is refused later, with its logical id."""


class _Built(NamedTuple):
    node: Node
    size: int
    depth: int


def read_yaml(text: str, file: str) -> tuple[Node, tuple[str, ...]]:
    """The document as a tree, and warnings. Raises `TemplateError` with line and column."""
    composer = _Composer(_events(text, file), file)
    return composer.document(), tuple(composer.warnings)


def _events(text: str, file: str) -> Iterator[Any]:
    """The parser's events; libyaml's where it was built in, which is quicker."""
    import yaml

    loader: Any = None
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        while loader.check_event():
            yield loader.get_event()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(mark) if mark else Place()
        reason = " ".join(part for part in (error.context, error.problem) if part)
        if _is_indented_with_tab(text, place):
            reason = "a tab stands in the indentation; indent with spaces"
        raise TemplateError(f"not YAML: {reason}", file=file, line=place.line, column=place.column) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise TemplateError(f"not YAML: {reason}", file=file) from None
    finally:
        if loader is not None:
            loader.dispose()


def _is_indented_with_tab(text: str, place: Place) -> bool:
    """Whether a tab stands before everything else in that line, which YAML does not allow."""
    lines = text.split("\n")
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    return "\t" in line[: len(line) - len(line.lstrip())]


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


class _Composer:
    """Builds the tree from the stream of events of one document."""

    def __init__(self, events: Iterator[Any], file: str) -> None:
        self._events = events
        self._file = file
        self._anchors: dict[str, _Built] = {}
        self._open: set[str] = set()
        self._path: list[str] = []
        """The keys of the maps around what is read."""
        self.warnings: list[str] = []

    def document(self) -> Node:
        from yaml import events

        next(self._events)
        start = next(self._events)
        if isinstance(start, events.StreamEndEvent):
            self._fail("the template is empty", Place(1, 1))
        built = self._build(next(self._events), 0)
        next(self._events)
        following = next(self._events)
        if not isinstance(following, events.StreamEndEvent):
            self._fail("a template is one YAML document; here a second one begins", _place(following.start_mark))
        return built.node

    def _build(self, event: Any, depth: int) -> _Built:
        from yaml import events

        place = _place(event.start_mark)
        if isinstance(event, events.AliasEvent):
            return self._alias(event.anchor or "", depth, place)
        if depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels", place)
        self._check_tag(event.tag, place)
        anchor = event.anchor
        if anchor:
            self._open.add(anchor)
        if isinstance(event, events.ScalarEvent):
            built = _Built(self._scalar(event, place), 1, 0)
        elif isinstance(event, events.SequenceStartEvent):
            built = self._list(depth, place)
        else:
            built = self._map(depth, place)
        built = self._tagged(event, built, place)
        if anchor:
            self._open.discard(anchor)
            self._anchors[anchor] = built
        return built

    def _alias(self, anchor: str, depth: int, place: Place) -> _Built:
        if anchor in self._open:
            self._fail(f"the alias *{anchor} stands inside what it names", place)
        if anchor not in self._anchors:
            self._fail(f"the alias *{anchor} names no anchor", place)
        built = self._anchors[anchor]
        if depth + built.depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels once the alias *{anchor} is resolved", place)
        return built

    def _list(self, depth: int, place: Place) -> _Built:
        from yaml import events

        parts: list[_Built] = []
        while not isinstance(event := next(self._events), events.SequenceEndEvent):
            parts.append(self._build(event, depth + 1))
        return self._sized(ListNode(tuple(part.node for part in parts), place), parts)

    def _map(self, depth: int, place: Place) -> _Built:
        from yaml import events

        own: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[MapNode] = []
        parts: list[_Built] = []
        while not isinstance(event := next(self._events), events.MappingEndEvent):
            key_place = _place(event.start_mark)
            is_merge = isinstance(event, events.ScalarEvent) and event.value == "<<" and event.implicit[0]
            key = "<<" if is_merge else self._key(event, key_place)
            self._path.append(key)
            part = self._build(next(self._events), depth + 1)
            self._path.pop()
            parts.append(part)
            if is_merge:
                merged += self._mergeable(part.node, key_place)
            elif key in own:
                self._fail(f"the key {key!r} stands twice in one map", key_place)
            else:
                own[key], keys[key] = part.node, key_place
        if merged:
            own, keys = _merge(merged, own, keys)
        return self._sized(MapNode(own, place, keys), parts)

    def _key(self, event: Any, place: Place) -> str:
        from yaml import events

        if isinstance(event, events.AliasEvent):
            node = self._alias(event.anchor or "", 0, place).node
            if not isinstance(node, ScalarNode):
                self._fail("a key must be text", place)
            return node.name
        if not isinstance(event, events.ScalarEvent) or event.tag not in (None, "!", f"{_CORE}str"):
            self._fail("a key must be text", place)
        if event.implicit[0] and event.value in _NULL:
            self._fail("a key is missing or null", place)
        if event.anchor:
            self._anchors[event.anchor] = _Built(ScalarNode(event.value, event.value, place), 1, 0)
        return str(event.value)

    def _mergeable(self, node: Node, place: Place) -> list[MapNode]:
        nodes = node.items if isinstance(node, ListNode) else (node,)
        maps = [item for item in nodes if isinstance(item, MapNode)]
        if len(maps) < len(nodes):
            self._fail("'<<' merges a map or a list of maps", place)
        return maps

    def _sized(self, node: ListNode | MapNode, parts: list[_Built]) -> _Built:
        size = 1 + sum(part.size for part in parts)
        if size > MAX_NODES:
            self._fail(f"larger than {MAX_NODES:,} values once aliases are resolved", node.place)
        return _Built(node, size, 1 + max((part.depth for part in parts), default=0))

    def _scalar(self, event: Any, place: Place) -> ScalarNode:
        text: str = event.value
        tag: str | None = event.tag
        if event.style == '"' and not _is_sound(text):
            self._fail("not YAML: a text holds an invalid escape", place)
        is_plain = event.style in (None, "") and tag != "!" and tag != f"{_CORE}str"
        if not is_plain or (tag and not tag.startswith(_CORE) and not text):
            return ScalarNode(text, text, place)
        if text in _NULL:
            self._fail("null values are not allowed in templates", place)
        if text in _TRUE or text in _FALSE:
            value = text in _TRUE
            return ScalarNode("true" if value else "false", value, place, text)
        if _NUMBER.fullmatch(text):
            node = number(text, place)
            if isinstance(node.value, str):
                self.warnings.append(as_written(self._file, node))
            return node
        return ScalarNode(text, text, place)

    def _tagged(self, event: Any, built: _Built, place: Place) -> _Built:
        """A short tag's node wrapped into the function that it stands for."""
        tag: str | None = event.tag
        if tag is None or tag == "!" or tag.startswith(_CORE):
            return built
        name = tag.removeprefix("!")
        key = name if name in _BARE_TAGS else f"Fn::{name}"
        node = MapNode({key: built.node}, place, {key: place})
        return _Built(node, built.size + 1, built.depth + 1)

    def _check_tag(self, tag: str | None, place: Place) -> None:
        if tag is None or tag == "!":
            return
        if tag.startswith(_CORE):
            if tag[len(_CORE) :] not in ("str", "int", "float", "bool", "seq", "map"):
                self._fail(f"the tag !!{tag[len(_CORE) :]} is not supported", place)
        elif tag.removeprefix("!") not in _BARE_TAGS | _TAGS:
            near = did_you_mean(tag.removeprefix("!"), _BARE_TAGS | _TAGS).replace("mean ", "mean !")
            self._fail(f"unknown tag {tag}", place, hint=near)

    def _fail(self, message: str, place: Place, *, hint: str = "") -> NoReturn:
        raise TemplateError(
            message,
            file=self._file,
            line=place.line,
            column=place.column,
            logical_id=entry_at(self._path),
            hint=hint,
        )


def _merge(
    merged: list[MapNode], own: dict[str, Node], keys: dict[str, Place]
) -> tuple[dict[str, Node], dict[str, Place]]:
    """A map's own keys over what it merges in; of two merged maps the first wins."""
    entries: dict[str, Node] = {}
    places: dict[str, Place] = {}
    for source in reversed(merged):
        entries.update(source.entries)
        places.update(source.keys)
    return {**entries, **own}, {**places, **keys}


def _is_sound(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
