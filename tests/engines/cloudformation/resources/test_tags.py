"""Tags: layers, shapes, changes, and who owns what."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.resources import tags
from stackhold.engines.cloudformation.resources.handler import Want
from stackhold.model.ids import LogicalId

KEYS = st.text("abc", min_size=1, max_size=3)
MAPS = st.dictionaries(KEYS, st.text("xyz", max_size=3), max_size=5)
OWNERSHIP = {"stackhold:stack": "shop", "stackhold:run": "r1"}


def _want(own: Any = None, stack: dict[str, str] | None = None) -> Want:
    properties = {} if own is None else {"Tags": own}
    return Want(LogicalId("Thing"), properties, name="", token="", tags=OWNERSHIP, stack_tags=stack or {})


def test_a_resources_own_tag_wins_over_the_stacks_and_ownership_over_both() -> None:
    want = _want([{"Key": "a", "Value": "own"}, {"Key": "stackhold:run", "Value": "forged"}], {"a": "stack", "b": "s"})
    assert tags.for_create(want) == {"a": "own", "b": "s", **OWNERSHIP}


@given(MAPS)
def test_both_shapes_hold_the_same_tags(own: dict[str, str]) -> None:
    assert tags.as_map(tags.as_list(own)) == own == tags.as_map(own)


@given(MAPS, MAPS)
def test_a_change_turns_the_old_tags_into_the_new_ones(old: dict[str, str], new: dict[str, str]) -> None:
    change = tags.change(tags.as_list(old), new)
    after = {key: value for key, value in {**old, **change.put}.items() if key not in change.remove}
    assert after == new


@given(MAPS)
def test_no_change_sends_nothing(same: dict[str, str]) -> None:
    change = tags.change(same, same)
    assert not change.put
    assert not change.remove


def test_a_change_never_takes_off_ownership_or_aws_tags() -> None:
    change = tags.change({**OWNERSHIP, "aws:cloudformation:stack-name": "x", "a": "1"}, {})
    assert change.remove == ("a",)


def test_a_read_shows_only_what_a_template_could_have_written() -> None:
    there = {**OWNERSHIP, "aws:x": "y", "b": "2", "a": "1"}
    assert tags.visible_list(there) == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    assert tags.hidden(there) == OWNERSHIP


def test_only_all_ownership_tags_make_a_resource_ours() -> None:
    want = _want()
    assert tags.are_ours({**OWNERSHIP, "a": "1"}, want)
    assert not tags.are_ours({**OWNERSHIP, "stackhold:run": "r2"}, want)
    assert not tags.are_ours([], want)


def test_a_boolean_value_is_written_in_lower_case() -> None:
    assert tags.as_map([{"Key": "on", "Value": True}]) == {"on": "true"}
