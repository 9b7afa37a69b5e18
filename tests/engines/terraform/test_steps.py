from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform.steps import (
    Approval,
    Operation,
    Script,
    Step,
    When,
    force_unlock_step,
    init_step,
    push_step,
    state_pull_step,
    steps,
    version_step,
    without_waiting,
)

INIT = "init -no-color -input=false -lock-timeout=300s"
VALIDATE = "validate -json"
PLAN = "plan -json -input=false -detailed-exitcode -lock-timeout=300s -out=/run/p"
SHOW = "show -json /run/p"
APPLY_PLAN = "apply -json -input=false -lock-timeout=300s /run/p"
REFRESH = "apply -json -input=false -refresh-only -auto-approve -lock-timeout=300s"

TABLE = {
    (Operation.APPLY, Approval.NONE): (
        INIT,
        VALIDATE,
        "apply -json -input=false -auto-approve -lock-timeout=300s",
    ),
    (Operation.APPLY, Approval.PLAN): (INIT, VALIDATE, PLAN, SHOW, APPLY_PLAN),
    (Operation.PLAN, Approval.NONE): (INIT, VALIDATE, PLAN, SHOW),
    (Operation.PLAN, Approval.PLAN): (INIT, VALIDATE, PLAN, SHOW),
    (Operation.DESTROY, Approval.NONE): (
        INIT,
        "destroy -json -input=false -auto-approve -lock-timeout=300s",
    ),
    (Operation.DESTROY, Approval.PLAN): (
        INIT,
        "plan -json -input=false -detailed-exitcode -destroy -lock-timeout=300s -out=/run/p",
        SHOW,
        APPLY_PLAN,
    ),
    (Operation.REFRESH, Approval.NONE): (INIT, REFRESH),
    (Operation.DRIFT, Approval.NONE): (
        INIT,
        REFRESH,
        "plan -json -input=false -detailed-exitcode -refresh=false -lock-timeout=300s -out=/run/p",
        SHOW,
    ),
    (Operation.RESTORE, Approval.NONE): (
        INIT,
        "state push -force -lock-timeout=300s /run/backup",
        "state list",
    ),
    (Operation.FORCE_UNLOCK, Approval.NONE): (INIT,),
}
"""Every operation's command lines, after the runtime's own command."""

TAKES_LOCK_TIMEOUT = {
    "init": True,
    "plan": True,
    "apply": True,
    "refresh": True,
    "destroy": True,
    "state push": True,
    "validate": False,
    "show": False,
    "state list": False,
    "state pull": False,
    "force-unlock": False,
    "version": False,
}
"""Which steps know `-lock-timeout`; the runtimes reject it elsewhere."""


def script(operation: Operation, approval: Approval = Approval.NONE, *, unlock: str = "", timeout: int = 300) -> Script:
    return Script(operation, timeout, plan_file="/run/p", approval=approval, backup="/run/backup", unlock=unlock)


def every_step(*, timeout: int = 300) -> list[Step]:
    found = [version_step(), force_unlock_step("an-id"), state_pull_step()]
    for operation, approval in TABLE:
        found += steps(script(operation, approval, timeout=timeout))
    return found


@pytest.mark.parametrize(("operation", "approval"), TABLE, ids=lambda each: str(each.value))
def test_an_operation_takes_these_steps_with_these_flags_in_this_order(
    operation: Operation, approval: Approval
) -> None:
    assert tuple(" ".join(step.args) for step in steps(script(operation, approval))) == TABLE[operation, approval]


def test_the_table_names_every_operation() -> None:
    assert {operation for operation, _ in TABLE} == set(Operation)


@pytest.mark.parametrize("operation", Operation)
def test_a_stale_lock_is_cleared_right_after_init(operation: Operation) -> None:
    names = [step.name for step in steps(script(operation, unlock="4711"))]

    assert names[:2] == ["init", "force-unlock"]
    assert names[2:] == [step.name for step in steps(script(operation))][1:]


def test_clearing_a_lock_names_its_id_and_asks_nothing() -> None:
    assert force_unlock_step("4711").args == ("force-unlock", "-force", "4711")


def test_steps_beside_an_operation_are_these() -> None:
    assert version_step().args == ("version", "-json")
    assert state_pull_step().args == ("state", "pull")
    assert push_step(script(Operation.APPLY), "/f", force=False).args == (
        "state",
        "push",
        "-lock-timeout=300s",
        "/f",
    )


@pytest.mark.parametrize("step", every_step(), ids=lambda step: "_".join(step.args))
def test_exactly_the_steps_that_know_it_are_given_a_lock_timeout(step: Step) -> None:
    given_timeouts = [arg for arg in step.args if arg.startswith("-lock-timeout")]

    assert given_timeouts == (["-lock-timeout=300s"] if TAKES_LOCK_TIMEOUT[step.name] else [])
    assert step.takes_lock == TAKES_LOCK_TIMEOUT[step.name]


def test_the_lock_timeout_table_names_every_step() -> None:
    assert {step.name for step in every_step()} == set(TAKES_LOCK_TIMEOUT)


@given(st.integers(0, 10**6))
def test_a_lock_timeout_always_has_its_unit(timeout: int) -> None:
    for step in every_step(timeout=timeout):
        for arg in step.args:
            assert not arg.startswith("-lock-timeout") or arg == f"-lock-timeout={timeout}s"


@pytest.mark.parametrize("step", every_step(), ids=lambda step: "_".join(step.args))
def test_without_waiting_only_the_lock_timeout_differs(step: Step) -> None:
    at_once = without_waiting(step)

    assert at_once.args == tuple("-lock-timeout=0s" if arg == "-lock-timeout=300s" else arg for arg in step.args)
    assert (at_once.name, at_once.has_stream, at_once.takes_lock, at_once.changes) == (
        step.name,
        step.has_stream,
        step.takes_lock,
        step.changes,
    )
    assert (at_once.finds_changes, at_once.when) == (step.finds_changes, step.when)


def test_backend_settings_go_to_init_alone_each_by_itself() -> None:
    wanted = ("key=a b", "file.hcl")
    given = Script(Operation.PLAN, 0, plan_file="/run/p", backend_config=wanted)

    assert init_step(given).args[-2:] == ("-backend-config=key=a b", "-backend-config=file.hcl")
    assert not any("-backend-config" in arg for step in steps(given)[1:] for arg in step.args)


@pytest.mark.parametrize("step", every_step(), ids=lambda step: "_".join(step.args))
def test_a_step_has_a_stream_exactly_when_the_runtime_prints_one(step: Step) -> None:
    assert step.has_stream == (step.args[0] in {"plan", "apply", "destroy"})
    assert step.has_stream <= ("-json" in step.args)


@pytest.mark.parametrize("step", every_step(), ids=lambda step: "_".join(step.args))
def test_only_a_plan_may_end_with_exit_2(step: Step) -> None:
    assert step.finds_changes == ("-detailed-exitcode" in step.args) == (step.args[0] == "plan")


@pytest.mark.parametrize("step", every_step(), ids=lambda step: "_".join(step.args))
def test_a_step_changes_something_exactly_when_it_applies_destroys_or_pushes(step: Step) -> None:
    assert step.changes == (step.name in {"apply", "refresh", "destroy", "state push"})


def test_a_plan_is_looked_at_only_when_it_found_something_and_applied_only_when_approved() -> None:
    for operation, approval in TABLE:
        for step in steps(script(operation, approval)):
            is_saved_plan = step.name == "apply" and step.args[-1] == "/run/p"
            expected = When.CHANGES if step.name == "show" else When.APPROVED if is_saved_plan else When.ALWAYS
            assert step.when is expected


def test_no_step_asks_a_question() -> None:
    for step in every_step():
        if step.args[0] in {"init", "plan", "apply", "destroy"}:
            assert "-input=false" in step.args
        if step.args[0] in {"apply", "destroy"} and step.args[-1] != "/run/p":
            assert "-auto-approve" in step.args


CHOSEN = ("-var-file=a.tfvars", "-var-file=b.tfvars", "-target=a.b", "-replace=a.c")


@pytest.mark.parametrize(("operation", "approval"), TABLE, ids=lambda each: str(each.value))
def test_what_limits_or_feeds_a_plan_goes_where_planning_is_done_and_never_to_a_saved_plan(
    operation: Operation, approval: Approval
) -> None:
    bare = script(operation, approval)
    chosen = replace(bare, var_files=("a.tfvars", "b.tfvars"), targets=("a.b",), replaces=("a.c",))
    expected = CHOSEN[:3] if operation in {Operation.REFRESH, Operation.DRIFT} else CHOSEN

    for before, after in zip(steps(bare), steps(chosen), strict=True):
        plans = before.args[0] in {"plan", "apply", "destroy"} and before.args[-1] != "/run/p"
        added = tuple(arg for arg in after.args if arg not in before.args)
        assert added == (expected if plans else ())
        assert tuple(arg for arg in after.args if arg in before.args) == before.args
