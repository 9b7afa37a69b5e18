from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.recordings import RUNTIMES, events, lines, streams, summary, summary_of

from stackhold.engines.terraform.diagnostics import Changes, Stream, Touch

every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)


def line(kind: str, **fields: Any) -> str:
    base = {"@level": "info", "@message": "m", "@timestamp": "2026-11-30T22:46:14.5Z", "type": kind}
    return json.dumps({**base, **fields})


def hook(action: str, address: str = "a.b", **fields: Any) -> dict[str, Any]:
    return {"resource": {"addr": address}, "action": action, **fields}


@every_runtime
def test_product_and_version_are_known(runtime: str) -> None:
    found = summary(runtime, "apply")

    product, _, version = runtime.partition("-")
    assert found.product == product
    assert found.version.startswith(version + ".")


@every_runtime
def test_an_apply_tells_what_it_made_under_which_id(runtime: str) -> None:
    found = summary(runtime, "apply")

    assert {(each.address, each.action, each.touch) for each in found.touched} == {
        (f"terraform_data.{name}", "create", Touch.DONE) for name in ("a", "b", "old", "gone")
    }
    assert all(each.id_key == "id" and len(each.id_value) == 36 and each.at for each in found.touched)
    assert found.changes == Changes(add=4)
    assert not found.has_error
    assert not found.is_interrupted
    assert not found.other_lines


@every_runtime
def test_a_replacement_is_a_delete_and_a_create(runtime: str) -> None:
    assert ("terraform_data.a", "replace") in summary(runtime, "plan-replace").planned
    touched = [
        (each.action, each.touch) for each in summary(runtime, "apply-saved").touched if "data.a" in each.address
    ]
    assert touched == [("delete", Touch.DONE), ("create", Touch.DONE)]


@every_runtime
def test_a_destroy_tells_what_was_under_which_id(runtime: str) -> None:
    found = summary(runtime, "destroy")

    assert {each.action for each in found.touched} == {"delete"}
    assert all(each.touch is Touch.DONE and each.id_value for each in found.touched)
    assert found.changes == Changes(destroy=4)


@every_runtime
def test_moved_removed_and_import_blocks_are_told_in_a_plans_words(runtime: str) -> None:
    assert set(summary(runtime, "plan-blocks").planned) == {
        ("terraform_data.new", "move"),
        ("terraform_data.taken", "import"),
        ("terraform_data.gone", "forget"),
    }
    found = summary(runtime, "apply-blocks")
    assert found.changes == Changes(import_=1)


@every_runtime
def test_drift_is_told(runtime: str) -> None:
    assert set(summary(runtime, "drift-refresh").drifted) == {
        ("probe_thing.first", "update"),
        ("probe_thing.second", "delete"),
    }
    assert set(summary(runtime, "drift-plan").planned) == {
        ("probe_thing.first", "update"),
        ("probe_thing.second", "create"),
    }


@every_runtime
def test_a_failed_create_is_told_with_its_address_and_place(runtime: str) -> None:
    found = summary(runtime, "create-error")

    [error] = found.errors
    assert (error.summary, error.address, error.where) == (
        "local-exec provisioner error",
        "terraform_data.a",
        "main.tf:2",
    )
    assert {(each.address, each.touch) for each in found.touched} == {
        ("terraform_data.a", Touch.FAILED),
        ("terraform_data.c", Touch.DONE),
    }
    assert found.changes is None


@every_runtime
@pytest.mark.parametrize("name", ["interrupted-apply", "interrupted-create", "interrupted-refresh", "interrupted-plan"])
def test_an_interruption_shows_in_the_stream(runtime: str, name: str) -> None:
    assert summary(runtime, name).is_interrupted


@every_runtime
def test_a_create_cut_off_by_an_interruption_is_told_as_failed_without_an_id(runtime: str) -> None:
    [cut] = [each for each in summary(runtime, "interrupted-create").touched if each.address == "probe_thing.second"]

    assert (cut.touch, cut.id_value) == (Touch.FAILED, "")
    assert cut.seconds >= 10


@every_runtime
def test_a_stream_that_breaks_off_says_what_may_exist(runtime: str) -> None:
    text = lines(runtime, "interrupted-create")
    at = next(i for i, each in enumerate(text) if "apply_progress" in each)

    touched = summary_of(text[: at + 1]).touched

    assert {(each.address, each.touch, bool(each.id_value)) for each in touched} == {
        ("probe_thing.first", Touch.DONE, True),
        ("probe_thing.second", Touch.STARTED, False),
    }


@every_runtime
def test_text_before_the_stream_is_kept_apart(runtime: str) -> None:
    found = summary(runtime, "text-before-json")

    assert found.planned == (("terraform_data.a", "create"),)
    expected = runtime.startswith("opentofu")
    assert any("does not exist" in each for each in found.other_lines) == expected


@every_runtime
def test_counts_are_of_no_use_beside_an_error(runtime: str) -> None:
    assert summary(runtime, "broken-tfvars-plan").changes is None
    assert summary(runtime, "missing-var-file-plan").changes is None
    assert summary(runtime, "plan-nothing").changes == Changes()


@every_runtime
def test_an_emergency_dump_is_the_state_byte_for_byte(runtime: str) -> None:
    state = summary(runtime, "emergency-dump").emergency_state

    assert state is not None
    assert state.decode() in "\n".join(lines(runtime, "emergency-dump"))
    read = json.loads(state)
    assert read["version"] == 4
    assert {each["name"] for each in read["resources"]} == {"a", "b"}
    assert summary(runtime, "final-write-failed").emergency_state is None


def test_a_dumped_state_keeps_numbers_as_they_are() -> None:
    raw = '{"serial": 12345678901234567890123, "x": 1.10, "y": "\\u00e9"}'
    entry = line("log", **{"@message": "Emergency state dump"})[:-1] + f', "note": "\\"state\\":", "state":{raw}}}'

    assert summary_of([entry]).emergency_state == raw.encode()


def test_a_dumped_state_may_be_text() -> None:
    assert (
        summary_of([line("log", **{"@message": "Emergency state dump", "state": "sealed"})]).emergency_state
        == b"sealed"
    )


@every_runtime
def test_nothing_that_is_told_holds_a_value(runtime: str) -> None:
    for name in streams(runtime):
        for event in events(runtime, name):
            assert "very-secret" not in repr(event)
            assert "sleep" not in repr(event)


@every_runtime
def test_what_is_told_of_an_apply_begins_with_the_plan_and_ends_with_the_counts(runtime: str) -> None:
    kinds = [event.kind for event in events(runtime, "apply")]

    assert kinds.index("planned") < kinds.index("started") < kinds.index("done")
    assert kinds[-2:] == ["summary", "output"]
    done = [event for event in events(runtime, "apply") if event.kind == "done"]
    assert all(event.id_value and event.action == "create" and event.at for event in done)


@every_runtime
def test_a_wait_for_the_lock_is_told(runtime: str) -> None:
    assert any(event.action == "lock" for event in events(runtime, "lock-wait-interrupted"))


def test_what_only_reads_leaves_nothing_to_look_for() -> None:
    text = [line("apply_start", hook=hook("read")), line("ephemeral_op_start", hook=hook("open"))]

    assert summary_of(text).touched == ()


def test_an_id_known_before_an_error_is_kept() -> None:
    text = [
        line("apply_start", hook=hook("update", id_key="id", id_value="i-1")),
        line("apply_errored", hook=hook("update", elapsed_seconds=3)),
    ]

    [touched] = summary_of(text).touched
    assert (touched.touch, touched.id_value, touched.seconds) == (Touch.FAILED, "i-1", 3)


def test_at_most_fifty_lines_of_text_are_kept_and_none_that_may_be_a_piece_of_a_state() -> None:
    text = ['{"@message":"Emergency state dump","state":{"sec', *(f"line {n}" for n in range(60)), "", "  "]

    kept = summary_of(text).other_lines

    assert kept == tuple(f"line {n}" for n in range(50))


shapes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(
    (
        *("version", "diagnostic", "planned_change", "resource_drift", "apply_start", "apply_complete"),
        *("apply_errored", "apply_progress", "provision_start", "change_summary", "outputs", "log"),
        *("state_lock_acquire", "unheard_of"),
    )
)
parts = st.sampled_from(["change", "hook", "changes", "diagnostic", "outputs", "state", "@message", "@timestamp"])


@given(st.lists(st.tuples(kinds, st.dictionaries(parts, shapes, max_size=4)) | st.text(), max_size=8))
def test_no_line_ends_the_reading(text: list[tuple[str, dict[str, Any]] | str]) -> None:
    stream = Stream()
    for each in text:
        stream.feed(each if isinstance(each, str) else line(each[0], **each[1]))
    stream.finish()


def test_a_line_nested_without_end_is_passed_over() -> None:
    assert summary_of(["[" * 100_000, '{"type":' + "[" * 100_000]).planned == ()
