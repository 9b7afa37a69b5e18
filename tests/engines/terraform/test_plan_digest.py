from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.plans import KEY, change, plan, summed

from stackhold.engines.terraform.planfile import summarize
from stackhold.errors import Bug

if TYPE_CHECKING:
    import random


def test_a_digest_without_a_key_is_our_own_mistake() -> None:
    with pytest.raises(Bug):
        summarize(plan(), key=b"")


def test_the_digest_tells_plans_apart_by_every_value_and_depends_on_the_key() -> None:
    base = change("a", "update", before={"x": 1}, after={"x": 2})
    digests = {
        summed(base).hash,
        summed(change("a", "update", before={"x": 1}, after={"x": 3})).hash,
        summed(change("a", "update", before={"x": 0}, after={"x": 2})).hash,
        summed(change("a", "update", before={"x": 1}, after={"x": "2"})).hash,
        summed(change("b", "update", before={"x": 1}, after={"x": 2})).hash,
        summed({**base, "deposed": "1"}).hash,
        summed({**base, "provider_name": "another"}).hash,
        summed(base, base).hash,
        summed(base, output_changes={"o": {"actions": ["update"], "before": 1, "after": 2}}).hash,
        summed(base, output_changes={"o": {"actions": ["update"], "before": 1, "after": 3}}).hash,
        summed(base, action_invocations=[{"address": "action.a.b"}]).hash,
        summed().hash,
        summarize(plan(base), key=b"another key").hash,
    }

    assert len(digests) == 13
    assert all(len(digest) == 64 for digest in digests)


def test_numbers_that_one_float_would_stand_for_are_told_apart() -> None:
    first = plan(change("a", "update", after={"x": "MARK"})).replace(b'"MARK"', b"0.1000000000000000055")
    second = plan(change("a", "update", after={"x": "MARK"})).replace(b'"MARK"', b"0.1")

    assert summarize(first, key=KEY).hash != summarize(second, key=KEY).hash


def test_the_digest_is_the_same_for_the_same_changes_whenever_and_in_whatever_order() -> None:
    a = change("a", "delete", "create", replace_paths=[["x"], ["y", 0]])
    again = change("a", "delete", "create", replace_paths=[["y", 0], ["x"]])
    b, idle = change("b", "create"), change("c", "no-op")

    first = summed(a, b, timestamp="2026-11-30T22:00:00Z", terraform_version="1.11.4", prior_state={"x": 1})
    second = summed(idle, b, again, timestamp="2026-12-01T22:00:00Z", terraform_version="1.15.5", variables={"n": 1})

    assert first.hash == second.hash


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
changes = st.builds(
    lambda name, actions, before, after: change(name, *actions, before=before, after=after),
    st.text(min_size=1),
    st.sampled_from([["create"], ["update"], ["delete"], ["delete", "create"], ["no-op"], ["read"], ["forget"]]),
    values,
    values,
)


@given(st.lists(changes, max_size=6), st.randoms(use_true_random=False))
def test_counts_add_up_and_order_means_nothing(found: list[dict[str, Any]], order: random.Random) -> None:
    first = summed(*found)
    shuffled = list(found)
    order.shuffle(shuffled)

    assert summed(*shuffled).hash == first.hash
    reads = sum(row.action == "read" for row in first.resources)
    counted = first.create + first.update + first.replace + first.delete + first.forget
    assert len(first.resources) == counted + reads
