"""One patch a pass, with what changed and nothing else."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.kube.scenes import NOW

from stackhold.kube.condition_reasons import ConditionReason, Type
from stackhold.kube.conditions import Transition, condition
from stackhold.kube.names import Kind
from stackhold.kube.status_draft import StatusDraft, merge_patch
from stackhold.kube.times import second_time
from stackhold.model.instant import MINUTE, Instant

R = ConditionReason
PAUSED = condition(Type.PAUSED, R.PAUSED)
FAILED = condition(Type.APPLY_JOB_SUCCEEDED, R.APPLY_FAILED, "Job x: apply failed")
LATER = Instant(NOW + MINUTE)


def document(**status: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 3, "resourceVersion": "41"}, "status": status}


def applied(before: Any, patch: Any) -> Any:
    """A JSON merge patch, as RFC 7396 has it."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = applied(merged.get(name), value)
    return merged


def test_a_pass_that_found_nothing_new_writes_nothing() -> None:
    first = StatusDraft(document())
    first.say(PAUSED, FAILED)
    first.put("lastRun", {"job": "x"})
    stored = document(**first.after(NOW))
    second = StatusDraft(stored)
    second.say(PAUSED, FAILED, None)
    second.put("lastRun", {"job": "x"})
    assert second.patch(LATER) is None
    assert StatusDraft(stored).patch(LATER) is None


def test_a_patch_names_the_version_that_was_read() -> None:
    draft = StatusDraft(document())
    draft.say(PAUSED)
    assert draft.patch(NOW) == {
        "metadata": {"resourceVersion": "41"},
        "status": {
            "conditions": [
                {
                    "type": "Paused",
                    "status": "True",
                    "reason": "Paused",
                    "message": "",
                    "observedGeneration": 3,
                    "lastTransitionTime": second_time(NOW),
                }
            ]
        },
    }


def test_a_field_is_set_as_a_whole_and_taken_away() -> None:
    draft = StatusDraft(document(activeJob={"name": "x"}, lastRun={"job": "w", "steps": [1]}, kept=1))
    draft.put("activeJob", None)
    draft.put("lastRun", {"job": "x"})
    assert draft.patch(NOW) == {
        "metadata": {"resourceVersion": "41"},
        "status": {"activeJob": None, "lastRun": {"job": "x", "steps": None}},
    }


def test_the_last_word_on_a_condition_counts() -> None:
    draft = StatusDraft(document())
    draft.say(FAILED)
    draft.say(condition(Type.APPLY_JOB_SUCCEEDED, R.APPLY_SUCCEEDED))
    assert draft.conditions()[Type.APPLY_JOB_SUCCEEDED].reason is R.APPLY_SUCCEEDED
    assert len(draft.after(NOW)["conditions"]) == 1


def test_ready_sums_up_what_was_said_before_and_now() -> None:
    first = StatusDraft(document())
    first.say(condition(Type.INFRASTRUCTURE_HEALTHY, R.HEALTHY))
    draft = StatusDraft(document(**first.after(NOW)))
    draft.sum_up(Kind.CLUSTER, is_provisioned=True)
    assert draft.conditions()[Type.READY].reason is R.READY
    draft.say(condition(Type.DELETING, R.DELETING))
    draft.sum_up(Kind.CLUSTER, is_provisioned=True)
    assert draft.conditions()[Type.READY].reason is R.NOT_READY


def test_events_are_for_what_is_not_as_it_was_read() -> None:
    draft = StatusDraft(document())
    draft.say(FAILED, PAUSED)
    assert draft.transitions() == [Transition(None, FAILED)]
    again = StatusDraft(document(**draft.after(NOW)))
    again.say(FAILED)
    assert again.transitions() == []


def test_an_object_without_a_status_is_one_of_which_nothing_was_said() -> None:
    draft = StatusDraft({"metadata": {}})
    assert draft.patch(NOW) is None
    draft.put("serial", 1)
    assert draft.patch(NOW) == {"status": {"serial": 1}}


leaves = st.integers() | st.text(max_size=3) | st.booleans()
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
documents = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(before=documents, after=documents)
def test_a_patch_makes_one_document_of_another(before: dict[str, Any], after: dict[str, Any]) -> None:
    read = copy.deepcopy(before)
    patch = merge_patch(before, after)
    assert before == read
    assert json.dumps(applied(before, patch), sort_keys=True) == json.dumps(after, sort_keys=True)
