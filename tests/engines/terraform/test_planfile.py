from __future__ import annotations

import time
from typing import Any

import pytest
from tests.engines.terraform.plans import KEY, change, plan, summed
from tests.engines.terraform.recordings import RUNTIMES, document, summary

from stackhold.engines.terraform.diagnostics import StreamSummary
from stackhold.engines.terraform.planfile import DriftSummary, PlannedChange, PlanSummary, drift_summary, summarize
from stackhold.errors import InputError

every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)


@every_runtime
def test_a_replacement_and_an_update_are_counted(runtime: str) -> None:
    found = summarize(document(runtime, "plan-replace-show"), key=KEY)

    assert (found.replace, found.update, found.create, found.delete, found.output_changes) == (1, 1, 0, 0, 1)
    assert found.resources == (
        PlannedChange("terraform_data.a", "replace"),
        PlannedChange("terraform_data.b", "update"),
    )
    assert found.is_destructive
    assert found.has_changes


@every_runtime
def test_moved_removed_and_import_blocks_are_counted_and_destroy_nothing(runtime: str) -> None:
    found = summarize(document(runtime, "plan-blocks-show"), key=KEY)

    assert (found.move, found.forget, found.import_, found.create, found.update) == (1, 1, 1, 0, 0)
    assert found.resources == (
        PlannedChange("terraform_data.gone", "forget"),
        PlannedChange("terraform_data.taken", "import"),
        PlannedChange("terraform_data.new", "move"),
    )
    assert not found.is_destructive


@every_runtime
def test_a_change_of_outputs_alone_is_something_to_do(runtime: str) -> None:
    found = summarize(document(runtime, "plan-output-only-show"), key=KEY)

    assert found.resources == ()
    assert found.output_changes == 1
    assert found.has_changes
    assert not found.is_destructive


@every_runtime
@pytest.mark.parametrize("name", ["plan-replace-show", "plan-blocks-show", "plan-output-only-show", "drift-show"])
def test_a_summary_holds_no_value(runtime: str, name: str) -> None:
    found = repr(summarize(document(runtime, name), key=KEY))

    assert "very-secret" not in found
    assert "behind" not in found


@every_runtime
def test_drift_is_what_it_takes_to_set_it_right(runtime: str) -> None:
    found = summarize(document(runtime, "drift-show"), key=KEY)

    drift = drift_summary(summary(runtime, "drift-refresh"), found)

    assert (drift.detected, drift.create, drift.update, drift.replace, drift.delete) == (True, 1, 1, 0, 0)
    assert {(row.address, row.action) for row in drift.resources} == {
        ("probe_thing.first", "update"),
        ("probe_thing.second", "create"),
    }


@every_runtime
def test_drift_that_the_module_does_not_mind_is_told_as_it_was_seen(runtime: str) -> None:
    drift = drift_summary(summary(runtime, "drift-refresh"), None)

    assert (drift.detected, drift.create, drift.update, drift.replace, drift.delete) == (True, 0, 1, 0, 1)


def test_without_drift_none_is_detected() -> None:
    assert drift_summary(StreamSummary(), None) == DriftSummary()
    assert drift_summary(StreamSummary(), summed()) == DriftSummary()
    assert drift_summary(StreamSummary(drifted=(("a.new", "move"),)), None) == DriftSummary()


def test_drift_names_at_most_twenty_resources() -> None:
    drifted = tuple((f"a.b[{n}]", "update") for n in range(100))

    drift = drift_summary(StreamSummary(drifted=drifted), summed(change("a.c", "create")))

    assert len(drift.resources) == 20
    assert drift.resources[0] == PlannedChange("a.c", "create")


@pytest.mark.parametrize(
    ("entry", "action", "counts"),
    [
        (change("a", "create"), "create", {"create": 1}),
        (change("a", "update"), "update", {"update": 1}),
        (change("a", "delete"), "delete", {"delete": 1}),
        (change("a", "delete", "create"), "replace", {"replace": 1}),
        (change("a", "create", "delete"), "replace", {"replace": 1}),
        (change("a", "forget"), "forget", {"forget": 1}),
        (change("a", "create", "forget"), "create", {"create": 1, "forget": 1}),
        (change("a", "read"), "read", {}),
        (change("a", "no-op", importing={"id": "i"}), "import", {"import_": 1}),
        (change("a", "update", importing={"id": "i"}), "update", {"update": 1, "import_": 1}),
        (change("a", "no-op", previous_address="b"), "move", {"move": 1}),
        (change("a", "delete", "create", previous_address="b"), "replace", {"replace": 1, "move": 1}),
        (change("a", "no-op", importing={"id": "i"}, previous_address="b"), "import", {"import_": 1, "move": 1}),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_action_is_named_and_counted(entry: dict[str, Any], action: str, counts: dict[str, int]) -> None:
    found = summed(entry)

    assert found == PlanSummary(hash=found.hash, resources=(PlannedChange("a", action),), **counts)
    assert found.has_changes
    assert found.is_destructive == (action in {"delete", "replace"})


def test_nothing_to_do_is_nothing() -> None:
    found = summed(change("a", "no-op"), change("b", "no-op", previous_address="b"))

    assert found == PlanSummary(hash=found.hash)
    assert not found.has_changes


def test_what_destroys_comes_first() -> None:
    found = summed(change("a", "read"), change("b", "create"), change("c", "delete", "create"), change("d", "delete"))

    assert [row.address for row in found.resources] == ["d", "c", "b", "a"]


def test_a_deposed_object_is_told_from_the_resource() -> None:
    found = summed(change("a", "create"), change("a", "delete", deposed="1234"))

    assert found.resources == (PlannedChange("a (deposed 1234)", "delete"), PlannedChange("a", "create"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no format version"),
        (b"{}", "no format version"),
        (b'{"format_version": 1}', "no format version"),
        (b'{"format_version": "2.0"}', r"format 2\.0"),
        (b'{"format_version": "0.2"}', r"format 0\.2"),
        (b'{"format_version": "1.2", "resource_changes": {}}', "resource_changes"),
        (b'{"format_version": "1.2", "resource_changes": [1]}', "resource_changes"),
        (b'{"format_version": "1.2", "resource_changes": [{}]}', "without actions"),
        (b'{"format_version": "1.2", "resource_changes": [{"change": {"actions": ["create"]}}]}', "without an address"),
        (b'{"format_version": "1.2", "output_changes": []}', "output_changes"),
        (b'{"format_version": "1.2", "output_changes": {"o": 1}}', "without actions"),
        (b'{"format_version": "1.2", "errored": true}', "not whole"),
    ],
)
def test_what_is_no_plan_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        summarize(text, key=KEY)


def test_an_action_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match=r"a\.b what this release does not know: melt"):
        summed(change("a.b", "melt"))


def test_formats_of_version_1_are_read() -> None:
    assert summarize(b'{"format_version": "1.99"}', key=KEY).resources == ()


def test_a_plan_of_ten_thousand_changes_is_summarized_in_a_moment() -> None:
    value = {f"attribute_{n}": "a value of some length" for n in range(20)}
    text = plan(*(change(f"a.b[{n}]", "update", before=value, after=value) for n in range(10_000)))
    began = time.perf_counter()

    found = summarize(text, key=KEY)

    assert time.perf_counter() - began < 5
    assert found.update == 10_000
    assert len(found.resources) == 10_000
