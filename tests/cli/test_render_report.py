from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stackhold.cli.printable import printable
from stackhold.cli.render_errors import of_error, of_unexpected
from stackhold.cli.render_report import report_document, report_text, trouble_text
from stackhold.errors import AwsError, LockHeld, TemplateError
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import Region, RunId, StackName
from stackhold.model.record import StateRecord
from stackhold.model.run import Outcome, RunIdentity, StopCause
from stackhold.runs.report import RunReport

STACK, REGION = StackName("payments"), Region("eu-west-1")
WHO = RunIdentity(RunId("r"), STACK, REGION, "deploy", "maria@b:1", "cloudformation", "0.1.0")
RECORD = StateRecord(STACK, REGION, outputs={"Url": "https://x", "List": ["a"]}, serial=4)


def report(outcome: Outcome = Outcome.SUCCEEDED, code: ExitCode = ExitCode.DONE, **more: Any) -> RunReport:
    return RunReport(identity=WHO, outcome=outcome, exit_code=code, **more)


def test_a_run_that_went_well_shows_counts_and_outputs() -> None:
    done = report(record=RECORD, changed=True, summary={"counts": {"create": 2, "delete": 1}})
    assert report_text(done, took_ms=12_300).splitlines() == [
        "payments (eu-west-1): deploy succeeded in 12 s: 2 created, 1 deleted",
        "",
        "Outputs",
        "  Url = https://x",
        '  List = ["a"]',
    ]
    assert trouble_text(done) == ""


def test_a_run_with_nothing_to_do_says_so() -> None:
    assert report_text(report(is_empty=True), took_ms=5) == (
        "payments (eu-west-1): nothing to deploy; record and template agree"
    )


def test_a_run_that_went_back_says_what_became_of_each_resource() -> None:
    failed = report(
        Outcome.FAILED,
        ExitCode.FAILED,
        changed=True,
        error="F: no",
        summary={
            "resources": [
                {"logicalId": "A", "operation": "create", "physicalId": "a-1", "wentBack": "deleted"},
                {"logicalId": "B", "operation": "update", "wentBack": "left", "reason": "denied"},
            ],
            "failures": [{"logicalId": "F", "error": "no"}, {"logicalId": "G", "error": "also\x1b"}],
        },
    )
    assert trouble_text(failed).splitlines() == [
        "stackhold: deploy of payments (eu-west-1): F: no",
        "  G: also\\x1b",
        "What became of each resource:",
        "  A (a-1)  create: deleted again",
        "  B  update: could not be undone, it stays as it is: denied",
        "What this run did was undone. Mend the cause and run the same deploy again.",
    ]


def entry(name: str, operation: str, outcome: str = "done", **more: object) -> dict[str, object]:
    return {"logicalId": name, "operation": operation, "outcome": outcome, **more}


def went_back(*entries: dict[str, object], code: ExitCode = ExitCode.FAILED) -> RunReport:
    counts = {"create": len(entries)}
    summary = {"counts": counts, "resources": list(entries), "failures": []}
    return report(Outcome.FAILED, code, changed=True, error="F: no", summary=summary)


def test_the_last_line_of_a_run_that_went_back_counts_what_was_undone() -> None:
    undone = went_back(
        entry("A", "create", wentBack="deleted"),
        entry("B", "create", wentBack="deleted"),
        entry("C", "update", wentBack="restored"),
        entry("F", "create", "failed", wentBack="untouched"),
    )
    assert report_text(undone, took_ms=600) == (
        "payments (eu-west-1): deploy failed and was undone in 0.6 s: "
        "2 created and deleted again, 1 updated and restored, 1 failed"
    )


def test_the_last_line_of_a_run_that_went_back_in_part_counts_what_was_left() -> None:
    left = went_back(
        entry("A", "create", wentBack="left", reason="denied"),
        entry("F", "create", "failed", wentBack="deleted"),
        code=ExitCode.PARTLY,
    )
    assert report_text(left, took_ms=600) == (
        "payments (eu-west-1): deploy failed and was partly undone in 0.6 s: 1 created and left as it is, 1 failed"
    )


def test_what_a_policy_kept_although_the_rest_was_undone_is_said() -> None:
    kept = went_back(
        entry("A", "create", physicalId="a-1", wentBack="kept", reason="as a-1 (DeletionPolicy Retain)"),
        entry("B", "create", wentBack="deleted"),
        entry("F", "create", "failed", wentBack="untouched"),
    )
    assert "1 created and kept by its policy, 1 created and deleted again, 1 failed" in report_text(kept, took_ms=1)
    assert (
        trouble_text(kept)
        .splitlines()[-1]
        .startswith("What this run did was undone, but for 1 resource that a policy kept. Mend the cause")
    )


@pytest.mark.parametrize(
    ("operation", "words"),
    [("create", "it never came to be"), ("update", "it is as it was"), ("replace", "it is as it was")],
)
def test_what_a_failed_operation_did_not_touch_is_said_in_fitting_words(operation: str, words: str) -> None:
    undone = went_back(entry("F", operation, "failed", wentBack="untouched"))
    assert f"  F  {operation}: {words}" in trouble_text(undone)


def test_a_stop_after_everything_was_done_does_not_ask_to_go_on() -> None:
    done = report(
        Outcome.INTERRUPTED,
        ExitCode.INTERRUPTED,
        changed=True,
        is_complete=True,
        error="stopped by SIGINT; everything had been done",
    )
    assert trouble_text(done) == (
        "stackhold: deploy of payments (eu-west-1): stopped by SIGINT; everything had been done"
    )


def test_a_stopped_run_counts_what_it_did_not_start() -> None:
    stopped = report(
        Outcome.INTERRUPTED, ExitCode.INTERRUPTED, changed=True, summary={"counts": {"create": 3, "not tried": 5}}
    )
    assert report_text(stopped, took_ms=1000).endswith(": 3 created, 5 not started")


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.INTERRUPTED, ExitCode.INTERRUPTED),
        (Outcome.DEADLINE_EXCEEDED, ExitCode.DEADLINE),
        (Outcome.FAILED, ExitCode.PARTLY),
    ],
)
def test_a_run_that_did_a_part_says_how_to_go_on(outcome: Outcome, code: ExitCode) -> None:
    assert "Run the same deploy again to go on" in trouble_text(report(outcome, code, changed=True))


def test_ids_that_no_record_has_are_named() -> None:
    lost = report(Outcome.LOCK_LOST, ExitCode.FAILED, error="the lock was lost", unsaved=("A a-1",), hint="Look.")
    assert trouble_text(lost).splitlines()[1:] == ["These exist and are in no record:", "  A a-1", "Look."]


def test_a_run_whose_work_could_not_be_saved_does_not_say_that_it_was_undone() -> None:
    lost = report(Outcome.FAILED, ExitCode.FAILED, changed=True, error="the disk is full", unsaved=("A a-1",))
    assert trouble_text(lost).splitlines()[1:] == [
        "These exist and are in no record:",
        "  A a-1",
        "Some of what the run did could not be saved. Mend the cause, look at these, and run the same deploy again.",
    ]


def test_what_stays_under_a_taken_name_is_part_of_the_next_step() -> None:
    resources = [
        {"logicalId": "Data", "operation": "create", "outcome": "done", "wentBack": "kept", "isNameTaken": True},
        {"logicalId": "Bad", "operation": "create", "outcome": "failed", "wentBack": "untouched"},
    ]
    said = trouble_text(report(Outcome.FAILED, ExitCode.FAILED, changed=True, summary={"resources": resources}))
    assert said.endswith(
        "Mend the cause, delete or rename what stays and has its name taken (Data), and run the same deploy again."
    )


@pytest.mark.parametrize("code", [ExitCode.PARTLY, ExitCode.FAILED])
@pytest.mark.parametrize("operation", ["deploy", "rollback"])
def test_a_run_whose_last_changes_are_in_no_save_does_not_say_that_they_are(code: ExitCode, operation: str) -> None:
    lost = report(Outcome.FAILED, code, changed=True, is_recorded=False)
    said = trouble_text(replace(lost, identity=replace(WHO, operation=operation)))
    assert "is recorded" not in said
    assert said.endswith(f"could not be saved. Mend the cause, and run the same {operation} again.")


def test_the_document_has_the_outcome_whatever_it_is() -> None:
    document = report_document(
        report(Outcome.INTERRUPTED, ExitCode.TERMINATED, cause=StopCause.CANCEL, record=RECORD), plan={"isEmpty": False}
    )
    assert document["outcome"] == "interrupted"
    assert document["exitCode"] == 143
    assert document["cause"] == "cancel"
    assert document["serial"] == 4
    assert document["outputs"] == {"Url": "https://x", "List": ["a"]}
    assert document["error"] == {"kind": "RunFailed", "message": "interrupted"}


def test_errors_show_facts_and_the_safe_next_step() -> None:
    held = LockHeld("payments is locked", details=("holder   x", "alive    y"), hint="Nothing was changed.\n  cmd")
    assert of_error(held).text == (
        "stackhold: payments is locked\n  holder   x\n  alive    y\nNothing was changed.\n  cmd\n"
    )
    refused = AwsError(service="sqs", operation="CreateQueue", code="X", reason="no", status=400)
    assert of_error(refused).facts["code"] == "X"
    wrong = TemplateError("bad", file="t.yaml", line=3, column=5, logical_id="A")
    assert of_error(wrong).text == "stackhold: t.yaml:3:5: A: bad\n"
    assert of_error(wrong).facts["line"] == 3


def test_an_unexpected_error_is_one_line_without_a_traceback_unless_asked_for() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        short = of_unexpected(error, with_traceback=False).text
        long = of_unexpected(error, with_traceback=True).text
    assert short.splitlines()[0] == "stackhold: internal error: ValueError: two lines"
    assert "STACKHOLD_DEBUG=1" in short
    assert "Traceback" not in short
    assert "Traceback" in long


def test_text_from_outside_cannot_move_the_cursor() -> None:
    assert printable("a\x1b[2Jb\r\n\tc\x9b") == "a\\x1b[2Jb\\x0d\n\tc\\x9b"


def test_what_was_in_flight_when_the_run_gave_up_is_named() -> None:
    given_up = report(
        Outcome.LOCK_LOST,
        ExitCode.FAILED,
        error="the lock was lost",
        hint="Look.",
        summary={
            "resources": [
                {"logicalId": "A", "operation": "create", "outcome": "unknown", "name": "a\x1b-1"},
                {"logicalId": "B", "operation": "update", "outcome": "unknown", "physicalId": "b-1"},
                {"logicalId": "C", "operation": "create", "outcome": "unknown"},
                {"logicalId": "D", "operation": "create", "outcome": "done", "physicalId": "d-1"},
            ]
        },
    )
    assert trouble_text(given_up).splitlines()[1:] == [
        "Not known whether these were done:",
        "  A  create of a\\x1b-1",
        "  B  update of b-1",
        "  C  create",
        "Look.",
    ]


def test_what_can_be_undone_is_said_with_the_command_that_does() -> None:
    stopped = report(Outcome.INTERRUPTED, ExitCode.TERMINATED, changed=True, is_journalled=True)
    undo = "stackhold rollback payments --region eu-west-1 --state s3://acme-state"
    assert trouble_text(stopped, undo_command=undo).splitlines()[-1] == (
        f"What was done is recorded. Run the same deploy again to go on from there. Or undo it with: {undo}"
    )
    failed_again = report(Outcome.FAILED, ExitCode.FAILED, changed=True, is_journalled=True)
    assert trouble_text(failed_again, undo_command=undo).splitlines()[-1] == (
        f"Mend the cause and run the same deploy again. Or undo what was left half done with: {undo}"
    )


def test_a_rollback_without_a_journal_says_that_there_is_nothing_to_roll_back() -> None:
    empty = RunReport(
        replace(WHO, operation="rollback"), Outcome.SUCCEEDED, ExitCode.DONE, is_empty=True, record=RECORD
    )
    assert report_text(empty, took_ms=5) == (
        "payments (eu-west-1): nothing to roll back: no run has left a rollback journal"
    )
