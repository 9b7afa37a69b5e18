"""Documents, scalars, and what a service adds to what was declared."""

from __future__ import annotations

from stackhold.engines.cloudformation.resources import shapes


def test_a_document_is_read_from_text_and_from_data() -> None:
    assert shapes.document('{"a": 1}') == {"a": 1} == shapes.document({"a": 1})
    assert shapes.document("") is None
    assert shapes.document("no json") == "no json"


def test_what_is_gone_differs_as_what_has_changed() -> None:
    assert shapes.differing({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 9}, ["a", "b", "c"]) == ["b", "c"]


def test_an_idle_extra_is_no_part_of_what_was_declared() -> None:
    declared = {"Rules": [{"A": {"X": "1"}}]}
    seen = {"Rules": [{"A": {"X": "1", "Y": ""}, "Off": False}], "Empty": []}
    assert shapes.like(declared, seen) == declared


def test_an_extra_that_says_something_stays() -> None:
    assert shapes.like({"A": 1}, {"A": 1, "B": True}) == {"A": 1, "B": True}


def test_a_declared_idle_value_stays() -> None:
    assert shapes.like({"A": False}, {"A": False}) == {"A": False}


def test_an_unknown_key_is_passed_on() -> None:
    assert shapes.renamed({"Old": 1, "Other": 2, "Left": None}, {"Old": "New"}) == {"New": 1, "Other": 2}
