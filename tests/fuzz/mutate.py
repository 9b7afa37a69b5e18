"""Mutations of an input: of its bytes, of its lines, of its tree when it is JSON. Everything from one random source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

MAX_BYTES: Final = 64_000
_STEP_COUNTS: Final = (1, 1, 1, 2, 3, 5)
_TREE_SHARE: Final = 0.4
_ODD_BYTES: Final = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\t",
    b"\r",
    b"\\",
    b'"',
    b"'",
    b"\\ud800",
    b"\\u0000",
    b"null",
    b"~",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"0x_",
    b"0b",
    b"1_0",
    b"12:30:45",
    b"2001-01-01",
    b"9" * 320,
    b"9" * 5000,
    b"[" * 200,
    b'{"a":' * 200,
    b"- " * 300,
    b"[" * 20_000,
    b'{"a":' * 10_000,
    b"- " * 10_000,
    b"{a: " * 5_000,
    b"(" * 200,
    b"{}",
    b"[]",
    b'""',
    b"{",
    b"}",
    b"]",
    b",",
    b":",
    b"&a ",
    b"*a",
    b"<<: ",
    b"? ",
    b"!Sub ",
    b"!GetAtt a.b.c",
    b"!Ref ",
    b"!If [a, b, c]",
    b"!!binary ",
    b"!!float ",
    b"!<x> ",
    b"%YAML 9.9\n",
    b"---\n",
    b"...\n",
    b"|9\n",
    b">-\n",
    b"# ",
    b"${",
    b"${!",
    b"${AWS::",
    b"{{resolve:",
    b"[a.b]\n",
    b"[[a]]\n",
    b"'''",
    b"1979-05-27T07:32:00Z",
)
_KEYS: Final = (
    "",
    "Ref",
    "Fn::Sub",
    "Fn::If",
    "Fn::Join",
    "Fn::Select",
    "Fn::Split",
    "Fn::Cidr",
    "Fn::GetAtt",
    "Fn::GetAZs",
    "Fn::FindInMap",
    "Fn::Base64",
    "Fn::Length",
    "Fn::ToJsonString",
    "Fn::ForEach::X",
    "Fn::ImportValue",
    "Fn::Equals",
    "Condition",
    "Type",
    "Properties",
    "extra",
    "__proto__",
    "a.b",
    "\u0000",
)


def mutated(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Some steps away from `data`; `others` are inputs that parts are taken from."""
    if chance.random() < _TREE_SHARE and (changed := _tree(data, chance)) is not None:
        data = changed
        if chance.random() < 1 / 2:
            return data[:MAX_BYTES]
    for _ in range(chance.choice(_STEP_COUNTS)):
        step: Callable[[bytes, Sequence[bytes], random.Random], bytes] = chance.choice(_STEPS)
        data = step(data, others, chance)
    return data[:MAX_BYTES]


def _flip(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _odd(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_ODD_BYTES) + data[at + chance.choice((0, 0, 1, 4)) :]


def _cut(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + data[end:]


def _double(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:end] + data[start:end] * chance.choice((1, 1, 2, 30)) + data[end:]


def _truncate(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _splice(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    start, end = _span(other, chance)
    at = chance.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at:]


def _word(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    """One word for another one of the same input."""
    words = data.split()
    if not words:
        return data
    return data.replace(chance.choice(words), chance.choice((*_ODD_BYTES, chance.choice(words))), 1)


def _line(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, chance.choice(lines))
        case 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = chance.choice((b"  ", b" ", b"\t", b"- ")) + lines[at]
        case _:
            taken = chance.choice(others).splitlines(keepends=True)
            lines.insert(at, chance.choice(taken) if taken else b"\n")
    return b"".join(lines)


_STEPS: Final = (_flip, _odd, _odd, _cut, _double, _truncate, _splice, _word, _word, _line, _line)


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 2, 8, 40, 400)))


def _tree(data: bytes, chance: random.Random) -> bytes | None:
    """The JSON with some of its values changed; None when it is none."""
    try:
        root: list[Any] = [json.loads(data)]
    except (ValueError, RecursionError):
        return None
    for _ in range(chance.choice(_STEP_COUNTS)):
        places = _places(root)
        if not places:
            return b""
        holder, key = chance.choice(places)
        _change(holder, key, places, chance)
    try:
        return json.dumps(root[0] if root else None, ensure_ascii=chance.random() < 1 / 2).encode()
    except (ValueError, RecursionError):
        return None


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every value of a tree, as what holds it and under which key."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [root]
    while waiting and len(found) < 5_000:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def _change(holder: Any, key: Any, places: list[tuple[Any, Any]], chance: random.Random) -> None:
    try:
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice((*_KEYS, *(str(place[1]) for place in places[:40])))] = holder.pop(key)
            case 2:
                holder[key] = {chance.choice(_KEYS): holder[key]}
            case 3:
                other, name = chance.choice(places)
                holder[key] = json.loads(json.dumps(other[name]))
            case _:
                holder[key] = _odd_value(chance)
    except (LookupError, ValueError):
        return  # an earlier change took the place away


def _odd_value(chance: random.Random) -> Any:
    values: tuple[Any, ...] = (
        None,
        True,
        False,
        0,
        -1,
        8,
        9,
        2**31,
        2**63,
        2**64,
        10**30,
        -(10**400),
        0.5,
        1e300,
        float("nan"),
        float("inf"),
        "",
        " ",
        "x",
        "8",
        "-1",
        "\x00",
        "\ud800",
        "x" * 3000,
        "${A}",
        "a.b.c",
        "{{resolve:ssm:/a}}",
        [],
        {},
        [[]],
        [{}],
        [None],
        ["a", "b"],
        {"": None},
        {"Ref": "X"},
        {"Ref": ["X"]},
        {"Fn::Join": ["", ["a", {"Ref": "AWS::Region"}]]},
        {"Fn::Select": [0, []]},
        {"Fn::Sub": "${A.B.C}"},
        {"Fn::If": ["C", 1, {"Ref": "AWS::NoValue"}]},
        {"Fn::FindInMap": ["M", "a", "b"]},
        {"Fn::Cidr": ["10.0.0.0/8", 256, 8]},
    )
    return chance.choice(values)
