"""Names and labels: fixed by a golden file, short enough for what Kubernetes makes of them, never two alike."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform.steps import Operation
from stackhold.kube import names
from stackhold.kube.names import Kind, Label, LeaseRole

GOLDEN = Path(__file__).parents[1] / "golden" / "kube" / "names.json"
LONG = "a-name-that-goes-on-and-on.until-nobody-can-remember.how-it-began-at-all"
HASH = "h2:51ab0c3d7e9f2a4b6c8d0e1f3a5b7c9d1e3f5a7b9c1d3e5f7a9b1c3d5e7f9a1b"
OPERATIONS = [operation for operation in Operation if operation is not Operation.FORCE_UNLOCK]

object_names = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?)?", fullmatch=True
)


def every_name() -> dict[str, object]:
    found: dict[str, object] = {
        "leader lease": names.LEADER_LEASE,
        "runner": names.RUNNER,
        "cluster lease": names.cluster_lease(namespace="team-a", cluster="prod"),
        "run secret": names.run_secret("captf-c-prod-apply-a1-000000"),
        "credentials mirror": names.credentials_mirror("aws"),
        "label of a long name": names.label_value(LONG),
    }
    for kind in Kind:
        suffix = names.state_suffix(kind, namespace="team-a", name="prod")
        found[kind.value] = {
            "finalizer": kind.finalizer,
            "suffix": suffix,
            "state": [names.state_secret(suffix), names.state_secret(suffix, 2)],
            "state lock": names.state_lock(suffix),
            "run lease": names.run_lease(suffix),
            "inputs": names.inputs_secret(kind, "prod"),
            "inputs of a long name": names.inputs_secret(kind, "x" * 250),
            "applied": names.applied_secret(kind, "prod"),
            "plan key": names.plan_key_secret(kind, "prod"),
            "backup": [names.backup_secret(suffix, 7), names.backup_secret(suffix, 7, 1)],
            "jobs": [names.job_name(kind, "prod", op, attempt=1, inputs_hash=HASH) for op in OPERATIONS],
            "job of a long name": names.job_name(kind, LONG, Operation.DESTROY, attempt=12, inputs_hash=HASH),
            "remediation": names.job_name(
                kind,
                "prod",
                Operation.APPLY,
                attempt=2,
                inputs_hash=HASH,
                tick=names.remediate_tick("2026-10-02T09:41:07Z"),
            ),
            "restore": names.job_name(
                kind,
                "prod",
                Operation.RESTORE,
                attempt=1,
                inputs_hash=HASH,
                tick=names.restore_tick(names.backup_secret(suffix, 7)),
            ),
            "labels of a Job": names.job_labels(kind, "prod", "prod", Operation.APPLY, 3),
            "labels of a lease": names.lease_labels(kind, LONG, "", LeaseRole.RUN),
            "labels of a state": names.state_labels(kind, "prod", "prod"),
        }
    return found


def test_no_name_changes_from_one_release_to_the_next() -> None:
    assert every_name() == json.loads(GOLDEN.read_text(encoding="utf-8"))


@given(
    kind=st.sampled_from(Kind),
    name=object_names,
    operation=st.sampled_from(OPERATIONS),
    attempt=st.integers(1, 10**12),
)
def test_the_pod_of_a_job_has_its_own_name_as_host_name(
    kind: Kind, name: str, operation: Operation, attempt: int
) -> None:
    job = names.job_name(kind, name, operation, attempt=attempt, inputs_hash=HASH)
    assert len(job) <= 57
    assert re.fullmatch(r"[a-z0-9][-a-z0-9.]*[a-z0-9]", job)


@given(name=object_names, other=object_names, kind=st.sampled_from(Kind), another=st.sampled_from(Kind))
def test_two_objects_never_share_a_state(name: str, other: str, kind: Kind, another: Kind) -> None:
    mine = names.state_suffix(kind, namespace="team-a", name=name)
    theirs = names.state_suffix(another, namespace="team-a", name=other)
    assert (mine == theirs) == ((kind, name) == (another, other))


@given(
    one=st.tuples(st.sampled_from(OPERATIONS), st.integers(1, 50), st.sampled_from(["", "restore/x", "remediate/x"])),
    two=st.tuples(st.sampled_from(OPERATIONS), st.integers(1, 50), st.sampled_from(["", "restore/x", "remediate/x"])),
)
def test_a_job_has_one_name_for_one_thing_to_do(
    one: tuple[Operation, int, str], two: tuple[Operation, int, str]
) -> None:
    first, second = (
        names.job_name(Kind.MACHINE, "m", operation, attempt=attempt, inputs_hash=HASH, tick=tick)
        for operation, attempt, tick in (one, two)
    )
    assert (first == second) == (one == two)


def test_a_job_of_other_inputs_has_another_name() -> None:
    first, second = (
        names.job_name(Kind.CLUSTER, "c", Operation.APPLY, attempt=1, inputs_hash=given) for given in ("h2:1", "h2:2")
    )
    assert first != second


@pytest.mark.parametrize("length", [63, 64, 253])
def test_a_label_takes_any_name(length: int) -> None:
    assert len(names.label_value("n" * length)) == (63 if length == 63 else 16)


def test_a_selector_names_every_label() -> None:
    labels = names.state_labels(Kind.CLUSTER, "prod", "prod")
    assert names.selector(labels).count("=") == len(labels)
    assert f"{Label.MOVE}=" in names.selector(labels).split(",")
