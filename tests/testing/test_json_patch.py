from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.testing.json_patch import PatchError, apply_patch


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": 1}, {"op": "add", "path": "", "value": [2]}, [2]),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"a": [1, 2, 3]}, {"op": "remove", "path": "/a/1"}, {"a": [1, 3]}),
        ({"a": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": 2}, {"a": {"b": 2}}),
        ({"a": 1}, {"op": "replace", "path": "", "value": 2}, 2),
        ({"a": {"x": 1}, "b": {}}, {"op": "move", "from": "/a/x", "path": "/b/y"}, {"a": {}, "b": {"y": 1}}),
        ({"a": {"x": 1}}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a": [1, {"b": None}]}, {"op": "test", "path": "/a", "value": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/a~1b"}, {"m~n": 2}),
        ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/m~0n"}, {"a/b": 1}),
    ],
)
def test_an_operation_does_what_the_standard_says(document: Any, operation: dict[str, Any], expected: Any) -> None:
    assert apply_patch(document, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "add", "path": "/l/3", "value": 1},
        {"op": "add", "path": "/l/01", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "test", "path": "/a", "value": True},
        {"op": "move", "from": "/o", "path": "/o/p"},
        {"op": "frobnicate", "path": "/a"},
        {"op": "remove", "path": ""},
        "remove",
    ],
)
def test_an_operation_that_cannot_be_done_changes_nothing(operation: Any) -> None:
    document = {"a": 1, "l": [1], "o": {}}
    with pytest.raises(PatchError):
        apply_patch(document, [{"op": "add", "path": "/new", "value": 1}, operation])
    assert document == {"a": 1, "l": [1], "o": {}}


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@given(old=st.dictionaries(st.text(max_size=3), VALUES), new=st.dictionaries(st.text(max_size=3), VALUES))
def test_adding_and_removing_members_leads_from_any_object_to_any_other(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    def path(name: str) -> str:
        return "/" + name.replace("~", "~0").replace("/", "~1")

    operations = [{"op": "add", "path": path(name), "value": value} for name, value in new.items()]
    operations += [{"op": "remove", "path": path(name)} for name in old if name not in new]
    assert apply_patch(old, operations) == new
