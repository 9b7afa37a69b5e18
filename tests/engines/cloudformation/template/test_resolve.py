from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.template.resolve import reference_paths, references, resolve
from stackhold.engines.cloudformation.values import UNKNOWN, AttrOf, Base64Of, JoinOf, RefTo, SelectOf, SplitOf
from stackhold.errors import TemplateError
from stackhold.model.ids import LogicalId

A, B, NEW = LogicalId("A"), LogicalId("B"), LogicalId("New")
KNOWN: dict[tuple[str, str | None], Any] = {
    (A, None): "a-id",
    (A, "Arn"): "arn:aws:x:a",
    (A, "Port"): 5432,
    (A, "On"): True,
    (A, "Names"): ["x", "y"],
    (B, None): "b-id",
}


def look_up(logical_id: LogicalId, attribute: str | None) -> Any:
    return KNOWN.get((logical_id, attribute), UNKNOWN)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [RefTo(A), 1, True]}, {"a": ["a-id", 1, True]}),
        (AttrOf(A, "Port"), 5432),
        (JoinOf("-", [RefTo(A), AttrOf(A, "Port"), AttrOf(A, "On")]), "a-id-5432-true"),
        (JoinOf("-", AttrOf(A, "Names")), "x-y"),
        (JoinOf("-", ["x", RefTo(NEW)]), UNKNOWN),
        (JoinOf("-", AttrOf(NEW, "Names")), UNKNOWN),
        ({"a": [RefTo(NEW), "b"], "c": JoinOf("", [RefTo(NEW)])}, {"a": [UNKNOWN, "b"], "c": UNKNOWN}),
        (SelectOf(1, AttrOf(A, "Names")), "y"),
        (SelectOf("0", [RefTo(A), RefTo(NEW)]), "a-id"),
        (SelectOf(1, [RefTo(A), RefTo(NEW)]), UNKNOWN),
        (SelectOf(RefTo(NEW), ["a"]), UNKNOWN),
        (SelectOf(0, SplitOf(":", AttrOf(A, "Arn"))), "arn"),
        (SplitOf(":", AttrOf(NEW, "Arn")), UNKNOWN),
        (Base64Of(AttrOf(A, "Port")), "NTQzMg=="),
        (Base64Of(RefTo(NEW)), UNKNOWN),
    ],
)
def test_resolving_gives(value: Any, expected: Any) -> None:
    assert resolve(value, look_up) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (SelectOf(2, AttrOf(A, "Names")), "past the end"),
        (SelectOf(0, RefTo(A)), "needs a list"),
        (SelectOf(RefTo(A), ["a"]), "whole number"),
        (JoinOf("-", RefTo(A)), "needs a list"),
        (JoinOf("-", ["x", AttrOf(A, "Names")]), "a list cannot be put into text"),
        (SplitOf(",", AttrOf(A, "Names")), "needs text, not a list"),
        (Base64Of(AttrOf(A, "Names")), "a list cannot be put into text"),
    ],
)
def test_a_function_that_meets_the_wrong_value_says_so(value: Any, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        resolve(value, look_up)


def test_references_are_found_in_every_operand() -> None:
    value = {
        "a": JoinOf("", ["x", RefTo(A)]),
        "b": [SelectOf(AttrOf(B, "N"), SplitOf(",", AttrOf(A, "Arn")))],
        "c": Base64Of(JoinOf("", AttrOf(NEW, "L"))),
    }
    assert references(value) == {(A, None), (B, "N"), (A, "Arn"), (NEW, "L")}
    assert [path for path, _, _ in reference_paths(value, "Properties")] == [
        "Properties.a",
        "Properties.b.0",
        "Properties.b.0",
        "Properties.c",
    ]


PLAIN = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@given(value=PLAIN)
def test_plain_data_resolves_to_itself_and_names_nothing(value: Any) -> None:
    assert resolve(value, look_up) == value
    assert references(value) == frozenset()
