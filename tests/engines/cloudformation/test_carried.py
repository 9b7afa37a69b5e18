"""What an update did not change keeps the baseline from before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st
from tests.engines.cloudformation.stage import THING, ThingHandler

from stackhold.engines.cloudformation.carried import carried_baseline
from stackhold.model.ids import PhysicalId
from stackhold.model.record import ResourceRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

values = st.dictionaries(st.sampled_from("ABCDE"), st.integers(0, 2))


class Moving(ThingHandler):
    """Changing `A` changes `B`."""

    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {"A": ("B",)}


def recorded(properties: dict[str, Any], observed: dict[str, Any] | None, *, name: str = "a") -> ResourceRecord:
    return ResourceRecord(PhysicalId(name), THING, properties, observed=observed)


@given(old=values, new=values, before=values, now=values)
def test_only_what_the_update_changed_is_taken_anew(
    old: dict[str, int], new: dict[str, int], before: dict[str, int], now: dict[str, int]
) -> None:
    found = carried_baseline(recorded(old, before), recorded(new, None), now, handler=ThingHandler())
    assert found is not None
    for name in "ABCDE":
        is_changed = old.get(name) != new.get(name)
        source = now if is_changed or name not in before else before
        assert found.get(name) == source.get(name)


def test_what_aws_changes_along_is_taken_anew() -> None:
    before, after = recorded({"A": 1}, {"A": 1, "B": 1, "C": 1}), recorded({"A": 2}, None)
    now = {"A": 2, "B": 2, "C": 2}
    assert carried_baseline(before, after, now, handler=Moving()) == {"A": 2, "B": 2, "C": 1}
    seen = carried_baseline(before, after, now, handler=ThingHandler(), moved=frozenset({"C"}))
    assert seen == {"A": 2, "B": 1, "C": 2}


def test_without_a_baseline_before_or_of_another_resource_it_is_taken_as_it_is() -> None:
    now = {"A": 2}
    for before in (None, recorded({"A": 1}, None), recorded({"A": 1}, {"A": 1, "B": 1}, name="other")):
        assert carried_baseline(before, recorded({"A": 2}, None), now, handler=ThingHandler()) == now


def test_when_nothing_is_read_what_was_changed_has_no_baseline_and_the_rest_keeps_it() -> None:
    before, after = recorded({"A": 1}, {"A": 1, "B": 1}), recorded({"A": 2}, None)
    assert carried_baseline(before, after, None, handler=ThingHandler()) == {"B": 1}
