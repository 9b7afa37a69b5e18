"""Conditions: closed, steady in time, summed up for Cluster API."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.scenes import NOW

from stackhold.errors import Bug
from stackhold.kube.condition_reasons import REASONS, ConditionReason, Status, Type
from stackhold.kube.conditions import (
    LONGEST_MESSAGE,
    Condition,
    Transition,
    condition,
    merge,
    read_conditions,
    ready,
    transitions,
)
from stackhold.kube.names import Kind
from stackhold.kube.times import second_time
from stackhold.model.instant import MINUTE, Instant

R = ConditionReason
EARLIER = Instant(NOW - 5 * MINUTE)
APPLIED = condition(Type.APPLY_JOB_SUCCEEDED, R.APPLY_SUCCEEDED)
FAILED = condition(Type.APPLY_JOB_SUCCEEDED, R.APPLY_FAILED, "Job x: apply failed")
GOOD = [
    condition(Type.DEPENDENCIES_READY, R.DEPENDENCIES_READY),
    condition(Type.IDENTITY_ALLOWED, R.IDENTITY_ALLOWED),
    condition(Type.CREDENTIALS_MIRRORED, R.MIRRORED),
    condition(Type.RUNNER_RBAC_READY, R.RBAC_READY),
    APPLIED,
    condition(Type.STATE_READABLE, R.STATE_READ),
    condition(Type.OUTPUTS_VALID, R.OUTPUTS_VALID),
    condition(Type.INFRASTRUCTURE_HEALTHY, R.HEALTHY),
    condition(Type.DELETING, R.NOT_DELETING),
]
said = st.sampled_from([(type_, reason) for type_, reasons in REASONS.items() for reason in reasons])


def by_type(*conditions: Condition) -> dict[Type, Condition]:
    return {each.type: each for each in conditions}


def test_every_type_has_its_reasons_and_every_reason_its_type() -> None:
    assert set(REASONS) == set(Type)
    assert {reason for reasons in REASONS.values() for reason in reasons} == set(R)


@pytest.mark.parametrize("type_", list(Type))
def test_what_waits_is_unknown_unless_somebody_has_to_act(type_: Type) -> None:
    acted_on = {
        R.WAITING_FOR_OWNER_MACHINE,
        R.WAITING_FOR_OWNER_MACHINE_POOL,
        R.WAITING_FOR_ENDPOINT,
    }
    for reason, status in REASONS[type_].items():
        if reason.value.startswith("WaitingFor"):
            assert status is (Status.FALSE if reason in acted_on else Status.UNKNOWN)


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (Type.APPLY_JOB_SUCCEEDED, R.DESTRUCTIVE_PLAN_BLOCKED),
        (Type.APPLY_JOB_SUCCEEDED, R.JOB_POLICY_INVALID),
        (Type.APPLY_JOB_SUCCEEDED, R.IDENTITY_NOT_ALLOWED),
        (Type.DEPENDENCIES_READY, R.VARIABLES_SOURCE_NOT_FOUND),
    ],
)
def test_these_are_false_although_they_only_wait(type_: Type, reason: ConditionReason) -> None:
    assert condition(type_, reason).status is Status.FALSE


def test_only_the_apply_condition_tells_of_an_image_that_cannot_be_had() -> None:
    assert [type_ for type_ in Type if R.IMAGE_PULL_FAILED in REASONS[type_]] == [Type.APPLY_JOB_SUCCEEDED]


def test_a_reason_that_a_condition_does_not_have_is_a_bug() -> None:
    with pytest.raises(Bug):
        condition(Type.DRIFT_JOB_SUCCEEDED, R.IMAGE_PULL_FAILED)


def test_the_time_moves_with_the_status_and_with_nothing_else() -> None:
    first = merge([], [FAILED], generation=1, now=EARLIER)
    again = merge(first, [condition(Type.APPLY_JOB_SUCCEEDED, R.JOB_DEADLINE_EXCEEDED)], generation=2, now=NOW)
    assert again[0]["lastTransitionTime"] == second_time(EARLIER)
    assert again[0]["reason"] == "JobDeadlineExceeded"
    assert again[0]["observedGeneration"] == 2
    assert merge(again, [APPLIED], generation=2, now=NOW)[0]["lastTransitionTime"] == second_time(NOW)


def test_a_condition_without_a_time_gets_one() -> None:
    damaged = [{"type": "ApplyJobSucceeded", "status": "True"}]
    assert merge(damaged, [APPLIED], generation=1, now=NOW)[0]["lastTransitionTime"] == second_time(NOW)


def test_what_others_say_stays() -> None:
    other = {"type": "Tested", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "then"}
    merged = merge([other, {"type": "Paused", "status": "False"}], [APPLIED], generation=1, now=NOW)
    assert merged[0] == other
    assert [each["type"] for each in merged] == ["Tested", "Paused", "ApplyJobSucceeded"]


def test_a_message_fits_what_the_api_takes() -> None:
    long = condition(Type.APPLY_JOB_SUCCEEDED, R.APPLY_FAILED, "x" * (LONGEST_MESSAGE + 1))
    assert len(merge([], [long], generation=1, now=NOW)[0]["message"]) == LONGEST_MESSAGE


@given(pair=said, message=st.text(max_size=20))
def test_what_is_written_is_read_again(pair: tuple[Type, ConditionReason], message: str) -> None:
    made = condition(*pair, message)
    assert read_conditions(merge([], [made], generation=1, now=NOW)) == {made.type: made}


@pytest.mark.parametrize(
    "damaged", [{}, {"type": "Ready"}, {"type": "Ready", "status": "Maybe", "reason": "Ready"}, {"type": "Other"}]
)
def test_what_cannot_be_understood_is_not_there(damaged: dict[str, Any]) -> None:
    assert read_conditions([damaged]) == {}


def test_an_event_is_told_of_what_changed_and_of_a_bad_beginning() -> None:
    drift, paused = condition(Type.DRIFT_DETECTED, R.DRIFT_REPORTED), condition(Type.PAUSED, R.PAUSED)
    again = condition(Type.APPLY_JOB_SUCCEEDED, R.APPLY_FAILED, "Job y: apply failed")
    assert transitions({}, [FAILED, *GOOD, drift, paused]) == [Transition(None, FAILED), Transition(None, drift)]
    assert transitions(by_type(FAILED), [again]) == []
    assert transitions(by_type(FAILED), [APPLIED]) == [Transition(FAILED, APPLIED)]


@pytest.mark.parametrize("kind", list(Kind))
def test_ready_is_all_nine_before_the_first_provisioning(kind: Kind) -> None:
    assert ready(kind, by_type(*GOOD), is_provisioned=False) == condition(Type.READY, R.READY)
    for missing in GOOD[:-1]:
        rest = by_type(*(each for each in GOOD if each is not missing))
        found = ready(kind, rest, is_provisioned=False)
        assert (found.reason, found.message) == (R.READY_UNKNOWN, f"{missing.type.value}: not known yet")
    assert ready(kind, by_type(*GOOD[:-1]), is_provisioned=False).reason is R.READY


@pytest.mark.parametrize(
    ("kind", "reason"), [(Kind.CLUSTER, R.READY), (Kind.MACHINE, R.READY), (Kind.MACHINE_POOL, R.NOT_READY)]
)
def test_a_failed_change_only_shows_on_a_pool_afterwards(kind: Kind, reason: ConditionReason) -> None:
    found = ready(kind, by_type(*GOOD) | by_type(FAILED), is_provisioned=True)
    assert found.reason is reason
    assert found.message == ("" if reason is R.READY else "ApplyJobSucceeded: ApplyFailed: Job x: apply failed")


def test_a_deletion_makes_it_not_ready_and_false_goes_over_unknown() -> None:
    waiting = condition(Type.INFRASTRUCTURE_HEALTHY, R.HEALTH_UNKNOWN)
    deleting = condition(Type.DELETING, R.DELETING)
    found = ready(Kind.CLUSTER, by_type(waiting, deleting), is_provisioned=True)
    assert (found.reason, found.message) == (R.NOT_READY, "Deleting: Deleting")
    open_ = ready(Kind.CLUSTER, by_type(waiting), is_provisioned=True)
    assert (open_.reason, open_.message) == (R.READY_UNKNOWN, "InfrastructureHealthy: HealthUnknown")


@pytest.mark.parametrize("type_", [Type.INPUTS_APPLIED, Type.DRIFT_DETECTED, Type.PAUSED, Type.RESTORE_JOB_SUCCEEDED])
def test_these_never_count_for_ready(type_: Type) -> None:
    for reason in REASONS[type_]:
        every = by_type(*GOOD, condition(type_, reason))
        for is_provisioned in (False, True):
            assert ready(Kind.MACHINE_POOL, every, is_provisioned=is_provisioned).reason is R.READY
