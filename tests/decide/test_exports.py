from __future__ import annotations

from stackhold.decide.exports import taken_exports, with_exports
from stackhold.model.exports import Export, ExportsIndex
from stackhold.model.ids import Region, StackName
from stackhold.model.instant import Instant

HERE = Region("eu-west-1")
OURS = StackName("orders")
THEIRS = StackName("billing")
NOW = Instant(1_796_061_740_008)


def index(**entries: Export) -> ExportsIndex:
    return ExportsIndex(HERE, exports=entries, last_modified=Instant(1_796_000_000_000))


def changed(
    before: ExportsIndex, exports: dict[str, object], outputs: dict[str, object] | None = None
) -> dict[str, Export] | None:
    after = with_exports(before, exports, outputs=outputs or {}, stack=OURS, region=HERE, now=NOW)
    return None if after is None else dict(after.exports)


def test_our_exports_are_added_and_updated_and_what_we_export_no_longer_goes() -> None:
    before = index(Url=Export("old", OURS, HERE), Gone=Export("x", OURS, HERE))
    assert changed(before, {"Url": "new", "Queue": "q"}) == {
        "Url": Export("new", OURS, HERE),
        "Queue": Export("q", OURS, HERE),
    }


def test_another_producers_entry_is_never_touched_even_under_our_name() -> None:
    before = index(Url=Export("theirs", THEIRS, HERE))
    assert changed(before, {"Url": "ours"}) is None
    assert changed(before, {}) is None


def test_an_entry_that_cdkd_made_of_a_plain_output_stays_and_follows_the_output() -> None:
    before = index(ApiUrl=Export("old", OURS, HERE))
    assert changed(before, {}, {"ApiUrl": "new", "Other": "o"}) == {"ApiUrl": Export("new", OURS, HERE)}
    assert changed(before, {}, {"ApiUrl": "old"}) is None


def test_plain_outputs_are_not_added() -> None:
    assert changed(index(), {}, {"ApiUrl": "u"}) is None


def test_nothing_of_ours_is_left_when_the_stack_is_gone() -> None:
    before = index(ApiUrl=Export("old", OURS, HERE), Url=Export("theirs", THEIRS, HERE))
    assert changed(before, {}) == {"Url": Export("theirs", THEIRS, HERE)}


def test_a_name_whose_producer_is_no_more_is_taken_over_and_no_other() -> None:
    before = index(Url=Export("theirs", THEIRS, HERE), Queue=Export("theirs", THEIRS, HERE))
    after = with_exports(before, {"Url": "u"}, outputs={}, stack=OURS, region=HERE, now=NOW, free={"Url", "Queue"})
    assert after is not None
    assert after.exports == {"Url": Export("u", OURS, HERE), "Queue": Export("theirs", THEIRS, HERE)}


def test_a_name_is_taken_when_another_stack_or_region_has_it() -> None:
    elsewhere = Region("us-east-1")
    before = index(Url=Export("u", THEIRS, HERE), Mine=Export("m", OURS, HERE), Far=Export("f", OURS, elsewhere))
    taken = taken_exports(before, ["Url", "Mine", "Far", "New"], stack=OURS, region=HERE)
    assert set(taken) == {"Url", "Far"}
