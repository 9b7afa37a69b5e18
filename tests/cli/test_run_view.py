from __future__ import annotations

import io
from typing import Any

from stackhold.cli.progress import LiveReporter, PlainReporter
from stackhold.cli.run_view import RunView, event_line
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LogicalId
from stackhold.model.instant import Instant
from stackhold.testing.clock import START, FakeClock

QUEUE = {"type": "AWS::SQS::Queue", "operation": "create"}


def at(seconds: float) -> Instant:
    return Instant(START + round(seconds * 1000))


def view() -> RunView:
    return RunView(title="deploy of payments (eu-west-1)", deadline_ms=3_600_000, lock_wait="5 m 0 s")


def event(kind: EventKind, seconds: float, name: str | None = None, message: str = "", **data: object) -> Event:
    return Event(kind, at(seconds), LogicalId(name) if name else None, message, data)


def test_a_waiting_run_shows_the_holder_and_the_lock_clock() -> None:
    shown = view()
    shown.apply(event(EventKind.RUN_STARTED, 0))
    waiting: dict[str, Any] = {"operation": "deploy", "since": at(-60), "silentMs": 40_000}
    shown.apply(event(EventKind.LOCK_WAITING, 1, message="waiting for the lock, held by maria@b:1", **waiting))
    assert shown.lines(at(31)) == [
        "deploy of payments (eu-west-1) · 31 s of 1 h 0 m · waiting 30 s of 5 m 0 s",
        "  waiting for the lock, held by maria@b:1, deploy since 07:59:00Z, renewed 40 s ago",
    ]
    shown.apply(event(EventKind.LOCK_ACQUIRED, 33, waitedMs=32_000))
    assert shown.lines(at(40)) == [
        "deploy of payments (eu-west-1) · 40 s of 1 h 0 m · waited 32 s of 5 m 0 s for the lock"
    ]


def test_what_is_in_flight_is_shown_oldest_first_with_its_age() -> None:
    shown = view()
    shown.apply(event(EventKind.RUN_STARTED, 0))
    shown.apply(event(EventKind.LOCK_ACQUIRED, 1))
    shown.apply(event(EventKind.PLANNED, 2, steps=[{"logicalId": name} for name in "ABC"]))
    shown.apply(event(EventKind.OPERATION_STARTED, 5, "B", **QUEUE))
    shown.apply(event(EventKind.OPERATION_STARTED, 3, "A", **QUEUE))
    shown.apply(event(EventKind.OPERATION_STARTED, 3, "C", **QUEUE))
    shown.apply(event(EventKind.OPERATION_DONE, 4, "C", **QUEUE))
    shown.apply(event(EventKind.OPERATION_SETTLING, 6, "A", type="AWS::SQS::Queue"))
    assert shown.lines(at(13)) == [
        "deploy of payments (eu-west-1) · 1 of 3 done · 13 s of 1 h 0 m",
        "  create   A  AWS::SQS::Queue  10 s (settling)",
        "  create   B  AWS::SQS::Queue  8 s",
    ]


def test_a_long_wait_is_a_line_in_a_log_and_a_note_in_the_view() -> None:
    role = {"type": "AWS::IAM::Role", "operation": "delete"}
    said = "iam:DeleteRole: still in use (DeleteConflict)"
    waiting = event(EventKind.OPERATION_WAITING, 12, "Role", said, code="DeleteConflict", **role)
    assert event_line(waiting) == f"08:00:12Z  delete   Role  AWS::IAM::Role  waiting  {said}"
    assert event_line(event(EventKind.OPERATION_WAITING, 12, None, said)) == f"08:00:12Z  waiting: {said}"
    shown = view()
    shown.apply(event(EventKind.OPERATION_STARTED, 0, "Role", **role))
    shown.apply(waiting)
    assert shown.lines(at(13))[-1] == f"  delete   Role  AWS::IAM::Role  13 s (waiting: {said})"


def test_a_long_list_is_cut_and_says_so() -> None:
    shown = view()
    for number in range(9):
        shown.apply(event(EventKind.OPERATION_STARTED, number, f"Q{number}", **QUEUE))
    assert shown.lines(at(20), height=3)[-1] == "  … and 6 more"


def test_a_stopping_run_says_why() -> None:
    shown = view()
    shown.apply(event(EventKind.STOPPING, 1, message="SIGINT"))
    assert "  stopping: SIGINT" in shown.lines(at(2))


def test_events_read_as_log_lines() -> None:
    done = event(EventKind.OPERATION_DONE, 1.2, "A", durationMs=800, **QUEUE)
    failed = event(EventKind.OPERATION_FAILED, 2, "B", "sqs:CreateQueue was refused: \x07", **QUEUE)
    assert event_line(done) == "08:00:01Z  create   A  AWS::SQS::Queue  done in 0.8 s"
    assert event_line(failed) == "08:00:02Z  create   B  AWS::SQS::Queue  FAILED  sqs:CreateQueue was refused: \\x07"
    assert event_line(event(EventKind.OPERATION_STARTED, 1, "A", **QUEUE)) is None


def test_what_warns_is_called_a_warning_and_shown_once_whatever_its_kind() -> None:
    out = io.StringIO()
    taken_over = event(EventKind.LOCK_TAKEN_OVER, 1, message="took over the lock", isWarning=True)
    PlainReporter(out).tell(taken_over)
    PlainReporter(out).tell(event(EventKind.RECOVERED, 2, message="nothing new"))
    assert out.getvalue() == "08:00:01Z  warning: took over the lock\n08:00:02Z  nothing new\n"


def test_plain_output_shows_a_waiting_line_once_per_holder() -> None:
    out = io.StringIO()
    reporter = PlainReporter(out)
    for seconds, holder in ((1, "a"), (2, "a"), (3, "b")):
        reporter.tell(event(EventKind.LOCK_WAITING, seconds, message=f"held by {holder}"))
    assert out.getvalue().splitlines() == ["08:00:01Z  held by a", "08:00:03Z  held by b"]


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_stream_that_is_gone_stops_no_run() -> None:
    reporter = PlainReporter(Gone())
    reporter.tell(event(EventKind.WARNING, 1, message="x"))
    reporter.tell(event(EventKind.WARNING, 2, message="y"))


def test_the_live_view_prints_what_is_done_and_gives_the_terminal_back() -> None:
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=20, color_system=None, legacy_windows=False)
    reporter = LiveReporter(console, view=view(), clock=FakeClock(jumps_when=0))
    reporter.tell(event(EventKind.OPERATION_STARTED, 1, "A", **QUEUE))
    reporter.tell(event(EventKind.OPERATION_DONE, 2, "A", durationMs=1000, **QUEUE))
    reporter.close()
    reporter.close()
    assert "08:00:02Z  create   A  AWS::SQS::Queue  done in 1 s" in out.getvalue()
    assert "deploy of payments (eu-west-1)" in out.getvalue()


def test_a_terraform_run_counts_the_operations_of_its_plan_and_names_the_step() -> None:
    shown = view()
    shown.apply(event(EventKind.RUN_STARTED, 0))
    shown.apply(event(EventKind.PLANNED, 1, steps=[{"operation": "apply"}]))
    shown.apply(Event(EventKind.STEP_STARTED, at(1), None, "plan"))
    assert shown.lines(at(2))[0] == "deploy of payments (eu-west-1) · plan · 2 s of 1 h 0 m"
    shown.apply(event(EventKind.STEP_DONE, 2))
    shown.apply(event(EventKind.PLANNED, 2, total=3))
    assert shown.lines(at(3))[0] == "deploy of payments (eu-west-1) · 0 of 3 done · 3 s of 1 h 0 m"
