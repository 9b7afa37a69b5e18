from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.recordings import RUNTIMES, document, exit_code, stderr, streams, summary

from stackhold.engines.terraform.diagnostics import (
    SUMMARY_LIMIT,
    Diagnostic,
    LockInfo,
    StreamSummary,
    Verdict,
    cut,
    error_summary,
    judge,
    read_validation,
    redacted,
)
from stackhold.engines.terraform.steps import Approval, Operation, Script, Step, force_unlock_step, push_step, steps
from stackhold.model.instant import Instant

every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)
SCRIPT = Script(Operation.APPLY, 0, plan_file="/run/p", approval=Approval.PLAN)
BY_NAME = {step.name: step for step in steps(SCRIPT)}
INIT, VALIDATE, PLAN, SHOW, APPLY = (BY_NAME[name] for name in ("init", "validate", "plan", "show", "apply"))
UNLOCK = force_unlock_step("4711")
PUSH = push_step(SCRIPT, "/f", force=True)

STREAMS = {
    "apply": (APPLY, Verdict.OK),
    "apply-blocks": (APPLY, Verdict.OK),
    "apply-saved": (APPLY, Verdict.OK),
    "apply-stale": (APPLY, Verdict.FAILED),
    "bad-flag-plan": (PLAN, Verdict.FAILED),
    "broken-tfvars-plan": (PLAN, Verdict.FAILED),
    "corrupt-state-plan": (PLAN, Verdict.FAILED),
    "create-error": (APPLY, Verdict.FAILED),
    "destroy": (APPLY, Verdict.OK),
    "drift-plan": (PLAN, Verdict.CHANGES),
    "drift-refresh": (APPLY, Verdict.OK),
    "emergency-dump": (APPLY, Verdict.FAILED),
    "final-write-failed": (APPLY, Verdict.FAILED),
    "http-held-plan": (PLAN, Verdict.LOCKED),
    "interrupted-apply": (APPLY, Verdict.INTERRUPTED),
    "interrupted-create": (APPLY, Verdict.INTERRUPTED),
    "interrupted-final-write": (APPLY, Verdict.OK),
    "interrupted-plan": (PLAN, Verdict.CHANGES),
    "interrupted-refresh": (PLAN, Verdict.INTERRUPTED),
    "lock-held-plan": (PLAN, Verdict.LOCKED),
    "lock-wait-interrupted": (PLAN, Verdict.INTERRUPTED),
    "missing-var-file-plan": (PLAN, Verdict.FAILED),
    "plan-blocks": (PLAN, Verdict.CHANGES),
    "plan-nothing": (PLAN, Verdict.OK),
    "plan-replace": (PLAN, Verdict.CHANGES),
    "refresh": (APPLY, Verdict.OK),
    "text-before-json": (PLAN, Verdict.CHANGES),
}
"""What every recorded stream comes to. One that was told to stop and was complete nonetheless is good."""

WITHOUT_STREAM = {
    "bad-config-init": (INIT, Verdict.FAILED),
    "lock-held-push": (PUSH, Verdict.LOCKED),
    "show-missing": (SHOW, Verdict.FAILED),
    "unlock-none": (UNLOCK, Verdict.OK),
}


@every_runtime
@pytest.mark.parametrize("name", STREAMS)
def test_each_recorded_stream_comes_to_this(runtime: str, name: str) -> None:
    step, expected = STREAMS[name]

    verdict = judge(step, exit_code=exit_code(runtime, name), summary=summary(runtime, name), stderr="")

    assert verdict is expected


@every_runtime
def test_every_recorded_stream_is_judged(runtime: str) -> None:
    assert set(streams(runtime)) == set(STREAMS)


@every_runtime
@pytest.mark.parametrize("name", WITHOUT_STREAM)
def test_a_step_without_a_stream_comes_to_this(runtime: str, name: str) -> None:
    step, expected = WITHOUT_STREAM[name]
    text = stderr(runtime, name)

    assert judge(step, exit_code=exit_code(runtime, name), summary=None, stderr=text) is expected


@every_runtime
def test_an_interrupted_init_says_so_or_is_complete(runtime: str) -> None:
    code = exit_code(runtime, "interrupted-init")

    verdict = judge(INIT, exit_code=code, summary=None, stderr=stderr(runtime, "interrupted-init"))

    assert verdict is (Verdict.INTERRUPTED if code else Verdict.OK)


def test_a_plan_with_an_error_is_never_good_whatever_its_exit_code() -> None:
    """One of the runtimes ends such a plan with 2 and writes a plan file that would apply."""
    assert exit_code("terraform-1.15", "broken-tfvars-plan") == 2
    for code in (0, 1, 2):
        found = summary("terraform-1.15", "broken-tfvars-plan")
        assert judge(PLAN, exit_code=code, summary=found, stderr="") is Verdict.FAILED


def test_exit_2_is_good_for_a_plan_alone() -> None:
    for step in (INIT, VALIDATE, SHOW, APPLY, UNLOCK, PUSH):
        assert judge(step, exit_code=2, summary=StreamSummary(), stderr="") is Verdict.FAILED
    assert judge(PLAN, exit_code=2, summary=StreamSummary(), stderr="") is Verdict.CHANGES


def test_a_step_that_died_of_the_signal_to_stop_was_interrupted_and_of_any_other_failed() -> None:
    for code in (-2, -15):
        assert judge(APPLY, exit_code=code, summary=StreamSummary(), stderr="") is Verdict.INTERRUPTED
    for code in (-9, -6, -11, 127):
        assert judge(APPLY, exit_code=code, summary=StreamSummary(), stderr="") is Verdict.FAILED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Failed to unlock state: LocalState not locked", Verdict.OK),
        ("Failed to unlock state: state was already unlocked", Verdict.OK),
        (
            "Failed to unlock state: unable to retrieve file from S3 bucket 'states' with key 'a.tflock': operation "
            "error S3: GetObject, https response error StatusCode: 404, RequestID: B0EV, HostID: 0ouv, NoSuchKey: ",
            Verdict.OK,
        ),
        (
            "╷\n│ Error: Failed to unlock state: failed to retrieve s3 lock info: operation error S3: GetObject, https "
            "response error StatusCode: 404, RequestID: Q7M4, HostID: IlrS, NoSuchKey: The specified key does not "
            "exist.\n│ \n╵\n",
            Verdict.OK,
        ),
        (
            "Failed to unlock state: lock ID 'a' does not match the existing lock ID 'b'\nLock Info:\n  ID:        b\n",
            Verdict.OK,
        ),
        ('╷\n│ Error: Failed to unlock state: lock id "a" from s3 does not\n│ match existing lock\n╵\n', Verdict.OK),
        ("Error: Failed to unlock state: api error NoSuchBucket: gone", Verdict.FAILED),
        ("Error: Failed to load state: access denied", Verdict.FAILED),
        ("", Verdict.FAILED),
    ],
)
def test_only_a_lock_that_is_gone_or_anothers_is_no_error_when_it_is_cleared(text: str, expected: Verdict) -> None:
    assert judge(UNLOCK, exit_code=1, summary=None, stderr=text) is expected
    assert judge(PUSH, exit_code=1, summary=None, stderr=text) is Verdict.FAILED


@every_runtime
def test_an_invalid_module_is_told_by_validate(runtime: str) -> None:
    found = read_validation(document(runtime, "broken-tfvars-validate").decode())

    if exit_code(runtime, "broken-tfvars-validate"):
        [error] = found
        assert (error.severity, error.summary, error.where) == ("error", "Invalid expression", "terraform.tfvars:1")
    else:
        assert found == ()


@given(st.text() | st.sampled_from(["{", "[]", "null", '{"diagnostics":[1,{}]}', '{"diagnostics":{}}', "text\n{}"]))
def test_what_is_no_validation_has_no_diagnostics(text: str) -> None:
    assert read_validation(text) == ()


@every_runtime
def test_a_summary_of_errors_names_place_address_and_summary_and_no_values(runtime: str) -> None:
    text = error_summary(summary(runtime, "create-error").diagnostics)

    assert text == "main.tf:2: terraform_data.a: local-exec provisioner error"


@every_runtime
def test_a_summary_of_an_interruption_leaves_out_what_it_only_caused(runtime: str) -> None:
    assert "execution halted" not in error_summary(summary(runtime, "interrupted-create").diagnostics)


@every_runtime
def test_a_summary_of_a_held_lock_names_its_holder_and_never_how_to_turn_locking_off(runtime: str) -> None:
    found = summary(runtime, "lock-held-plan")

    text = error_summary(found.diagnostics, lock=found.lock)

    assert text.startswith("the state lock is held by maria@laptop since 2026-11-30 2")
    assert "OperationTypeApply" in text
    assert "-lock=false" not in text
    assert "Error acquiring" not in text


@every_runtime
def test_errors_are_found_in_text_with_their_places(runtime: str) -> None:
    text = error_summary((), stderr=stderr(runtime, "bad-config-init"))

    assert text.splitlines()[0] == "main.tf:1: Unclosed configuration block"
    assert "{" not in text
    assert "described below" not in text


@every_runtime
def test_text_without_an_error_summarizes_to_nothing(runtime: str) -> None:
    assert error_summary((), stderr="a line\nanother line with a very-secret\n") == ""
    assert "LocalState not locked" in error_summary((), stderr=stderr(runtime, "unlock-none"))


@pytest.mark.parametrize("line", ["panic: a very-secret", "fatal error: out of memory: very-secret"])
def test_a_crash_is_told_without_its_words(line: str) -> None:
    assert error_summary((), stderr=f"Error: first\n{line}\n\ngoroutine 1 [running]:\n") == "the runtime crashed"


def test_a_lock_of_an_unknown_holder_is_told_by_its_id() -> None:
    assert error_summary((), lock=LockInfo("4711")) == "the state lock is held by somebody; ID 4711"


diagnostics = st.builds(Diagnostic, st.sampled_from(["error", "warning"]), st.text(), st.text(), st.text(), st.text())


@given(st.lists(diagnostics, max_size=30), st.text())
def test_a_summary_is_never_longer_than_512_bytes(found: list[Diagnostic], text: str) -> None:
    lock = LockInfo(text, who=text * 50, created=Instant(1_796_078_000_000))

    assert len(error_summary(found, lock=lock, stderr=text * 20).encode()) <= SUMMARY_LIMIT
    assert len(error_summary(found, stderr=text).encode()) <= SUMMARY_LIMIT


@given(st.text(st.characters()), st.integers(3, 40))
def test_cutting_keeps_whole_characters_and_a_short_text_as_it_is(text: str, limit: int) -> None:
    short = cut(text, limit)

    assert len(short.encode()) <= limit
    assert short == text.encode(errors="replace").decode() or short.endswith("…")


@given(st.lists(st.text(min_size=4), min_size=1, max_size=4), st.text())
def test_no_secret_is_left_in_what_was_redacted(secrets: list[str], around: str) -> None:
    text = around.join([*secrets, json.dumps(secrets)])

    out = redacted(text, secrets)

    assert not any(secret in piece for piece in out.split("(hidden)") for secret in secrets)


def test_what_is_too_short_for_a_secret_is_left() -> None:
    assert redacted("exit 1 of 12", ["", "1", "12"]) == "exit 1 of 12"
    assert redacted("the password is hunter22!", ["hunter22", "hunter22!"]) == "the password is (hidden)"


def test_a_step_of_another_name_is_judged_alike() -> None:
    step = Step("something new", ("x",))

    assert judge(step, exit_code=0, summary=None, stderr="Error: no") is Verdict.OK
    assert judge(step, exit_code=1, summary=None, stderr="") is Verdict.FAILED
