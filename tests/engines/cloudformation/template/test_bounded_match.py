from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.template.bounded_match import BoundedPattern, TooMuchWork
from stackhold.engines.cloudformation.template.java_pattern import java_pattern

LONG = "a" * 4096


def matches(pattern: str, text: str) -> bool:
    return BoundedPattern(java_pattern(pattern)).fullmatch(text)


def grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(parts, min_size=1, max_size=3).map("".join)
    chosen = st.lists(parts, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})")
    repeated = st.tuples(parts, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}?", "*?"])).map(
        lambda pair: f"(?:{pair[0]}){pair[1]}"
    )
    looked = st.tuples(st.sampled_from(["?=", "?!", "", "?i:"]), parts).map(lambda pair: f"({pair[0]}{pair[1]})")
    return joined | chosen | repeated | looked


PLAIN = ["a", "b", "-", ".", "[ab]", "[^a]", "[^a-b0]", r"\d", r"\W", r"[\w-]"]
PLACES = ["^", "$", r"\b", r"\B", r"\A", r"\Z", "(?<=a)", "(?<!ab)", "(?!)"]
ATOMS = st.sampled_from([*PLAIN, *PLACES])


@given(pattern=st.recursive(ATOMS, grown, max_leaves=8), text=st.text("aAb0-\n", min_size=1, max_size=6))
def test_it_agrees_with_pythons_own_matcher(pattern: str, text: str) -> None:
    compiled = re.compile(pattern, re.ASCII)
    assert BoundedPattern(compiled).fullmatch(text) is (compiled.fullmatch(text) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a|aa)+b",
        "a*a*a*a*a*a*a*b",
        "(" * 30 + "a*" + ")*" * 30 + "b",
        "((a{1,2000}){1,2000}){1,2000}b",
        "(?=(a+)+b)a*",
    ],
)
def test_no_pattern_takes_longer_than_its_text_is_worth(pattern: str) -> None:
    assert not matches(pattern, LONG)


def test_a_pattern_that_still_takes_too_long_is_given_up() -> None:
    with pytest.raises(TooMuchWork):
        matches("((a?){2000}b?){2000}c", LONG)


def test_a_back_reference_is_matched_where_little_repeats_and_refused_elsewhere() -> None:
    assert matches(r"(\w+)-\1", "ab-ab")
    assert not matches(r"(\w+)-\1", "ab-ac")
    with pytest.raises(ValueError, match="beside several repetitions"):
        BoundedPattern(java_pattern(r"(a+)+\1"))


def test_flags_hold_for_the_whole_or_for_their_group() -> None:
    assert matches("(?i)abc", "aBC")
    assert matches("a(?i:b)c", "aBc")
    assert not matches("a(?i:b)c", "aBC")
    assert matches("(?s).", "\n")
