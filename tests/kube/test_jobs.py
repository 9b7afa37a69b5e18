"""The Job of each operation: whole, accepted by the runner, found again by its name, adopted when it is there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.job_scenes import OWNER, configured, job_document, order
from tests.kube.scenes import NEW, NOW, OLD, settled

from stackhold.cli.runner import run as run_command
from stackhold.engines.terraform.steps import Operation
from stackhold.errors import Bug
from stackhold.kube.decide import Reason, Run
from stackhold.kube.jobs import (
    Adoption,
    Backup,
    Identity,
    Owner,
    SecretStep,
    adopt,
    build_job,
    identify,
    secret_step,
)
from stackhold.kube.names import Kind, run_secret
from stackhold.kube.pod import runner_arguments
from stackhold.kube.snapshot import RestoreRequest
from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from stackhold.kube.jobs import Order

GOLDEN = Path(__file__).parents[1] / "golden" / "kube" / "jobs.json"
APPLY, PLAN, RESTORE = Operation.APPLY, Operation.PLAN, Operation.RESTORE
JOB_OPERATIONS = [operation for operation in Operation if operation is not Operation.FORCE_UNLOCK]
BACKUP = Backup(7, ("captf-state-backup-x-c-7", "captf-state-backup-x-c-7-part-1"), 12)


def ordered(operation: Operation) -> Order:
    """An order with all that its operation may have."""
    more: dict[str, Any] = {"backup": BACKUP} if operation is RESTORE else {}
    if operation is APPLY:
        more = {"guards_deletes": True, "expect_plan": "p2:1", "plan": "prod-1", "force_unlock": "lock-1"}
        more |= {"is_remediation": True, "is_after_failed_apply": True, "after_interrupted_apply": "gone"}
        more |= {"allow_deletes_hash": "h2:approved"}
    return order(operation, **more)


def source_of(built: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = built["spec"]["template"]["spec"]["containers"][0]
    return found


def volume_of(built: dict[str, Any], name: str) -> dict[str, Any]:
    volumes = {each["name"]: each for each in built["spec"]["template"]["spec"]["volumes"]}
    found: dict[str, Any] = volumes[name]
    return found


def test_jobs_are_as_they_were_released() -> None:
    built = {operation.value: build_job(ordered(operation)) for operation in JOB_OPERATIONS}
    assert built == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("operation", JOB_OPERATIONS)
def test_the_runner_takes_every_argument(operation: Operation) -> None:
    context = run_command.make_context("run", runner_arguments(ordered(operation)))
    assert context.params["operation"] == operation.value
    assert context.params["result_file"] == "/dev/termination-log"
    assert context.params["command"] == ("/captf/runtime",)
    assert len(context.params["backend_config"]) == 4
    assert context.params["job_name"] == ordered(operation).name


def test_a_job_is_tried_once_and_stays_until_it_is_pruned() -> None:
    spec = build_job(order())["spec"]
    pod = spec["template"]["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 3600
    assert spec["podReplacementPolicy"] == "Failed"
    assert "ttlSecondsAfterFinished" not in spec
    assert "podFailurePolicy" not in spec
    assert pod["restartPolicy"] == "Never"
    assert pod["terminationGracePeriodSeconds"] == 600
    assert len(pod["initContainers"]) + len(pod["containers"]) <= 3


def test_both_clocks_come_from_the_policy() -> None:
    built = build_job(order(policy=configured(activeDeadlineSeconds=7200, lockTimeoutSeconds=0)))
    assert built["spec"]["activeDeadlineSeconds"] == 7200
    assert "--lock-timeout=0s" in source_of(built)["args"]
    assert "--stop-timeout=570s" in source_of(built)["args"]


def test_the_main_container_is_the_module_image_and_the_runner_is_started_in_it() -> None:
    pod = build_job(order())["spec"]["template"]["spec"]
    source, copier = pod["containers"][0], pod["initContainers"][0]
    assert (source["name"], copier["name"]) == ("source", "runner")
    assert source["image"] == "registry.example/modules/cluster:v1"
    assert source["command"] == ["/captf/bin/start", "runner", "run"]
    assert source["terminationMessagePolicy"] == "File"
    assert copier["volumeMounts"] == [{"name": "runner", "mountPath": "/captf/bin"}]
    assert pod["serviceAccountName"] == "captf-runner"


def test_secrets_are_readable_for_the_group_and_nobody_else() -> None:
    built = build_job(order())
    for name in ("config", "creds", "plan-key"):
        assert volume_of(built, name)["secret"]["defaultMode"] == 0o440
    assert built["spec"]["template"]["spec"]["securityContext"]["fsGroup"] == 65532


@pytest.mark.parametrize("operation", JOB_OPERATIONS)
def test_only_a_plan_and_an_apply_see_the_plan_key(operation: Operation) -> None:
    built = build_job(ordered(operation))
    mounts = [each["name"] for each in source_of(built)["volumeMounts"]]
    is_seen = operation in (PLAN, APPLY)
    assert ("plan-key" in mounts) is is_seen
    assert ("--plan-key-file=/captf/plan-key/key" in source_of(built)["args"]) is is_seen


def test_a_restore_finds_the_backup_beside_its_root() -> None:
    built = build_job(order(RESTORE, backup=BACKUP))
    sources = volume_of(built, "config")["projected"]["sources"]
    assert sources[0] == {"secret": {"name": run_secret(built["metadata"]["name"])}}
    assert [each["secret"]["items"][0]["path"] for each in sources[1:]] == ["restore/0", "restore/1"]
    arguments = source_of(built)["args"]
    assert [each for each in arguments if each.startswith("--restore")] == [
        "--restore-chunks=/captf/config/restore/0",
        "--restore-chunks=/captf/config/restore/1",
        "--restore-resources=12",
    ]


def test_the_policy_overlays_the_security_contexts_but_no_capability_comes_back() -> None:
    policy = configured(
        securityContext={"runAsUser": 1000, "capabilities": {"drop": ["NET_RAW"]}},
        podSecurityContext={"fsGroup": 1000},
    )
    built = build_job(order(policy=policy))
    assert source_of(built)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]},
    }
    pod = built["spec"]["template"]["spec"]
    assert pod["securityContext"] == {"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["initContainers"][0]["securityContext"]["runAsUser"] == 65532


def test_nobody_says_who_the_module_runs_as() -> None:
    context = source_of(build_job(order()))["securityContext"]
    assert not {"runAsUser", "runAsNonRoot"} & set(context)


def test_the_policys_variables_come_last_and_reserved_ones_not_at_all() -> None:
    env = [{"name": "TF_LOG", "value": "TRACE"}, {"name": "KUBE_HOST", "value": "x"}, {"name": "TMPDIR", "value": "/x"}]
    names = [(each["name"], each["value"]) for each in source_of(build_job(order(policy=configured(env=env))))["env"]]
    assert names == [
        ("TF_IN_AUTOMATION", "1"),
        ("TF_INPUT", "0"),
        ("HOME", "/captf/work"),
        ("KUBE_NAMESPACE", "acme"),
        ("CHECKPOINT_DISABLE", "1"),
        ("TMPDIR", "/x"),
    ]


def test_the_policy_names_account_pull_secrets_and_resources() -> None:
    policy = configured(
        serviceAccountName="team", imagePullSecrets=[{"name": "a"}, {"name": "b"}], resources={"limits": {"cpu": "1"}}
    )
    built = build_job(order(policy=policy))
    pod = built["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "team"
    assert pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert source_of(built)["resources"] == {"limits": {"cpu": "1"}}
    assert "imagePullSecrets" not in build_job(order())["spec"]["template"]["spec"]


def test_the_states_labels_are_told_to_the_backend_as_an_expression() -> None:
    flag = next(each for each in runner_arguments(order()) if "labels=" in each)
    labels = json.loads(flag.removeprefix("--backend-config=labels="))
    assert labels == {
        "captf.io/managed": "true",
        "captf.infrastructure.cluster.x-k8s.io/owner-kind": "TerraformCluster",
        "captf.infrastructure.cluster.x-k8s.io/owner-name": "prod",
        "cluster.x-k8s.io/cluster-name": "prod",
        "clusterctl.cluster.x-k8s.io/move": "",
    }


def test_events_are_about_the_object_unless_they_are_off() -> None:
    told = f"--event-object=infrastructure.cluster.x-k8s.io/v1alpha1/TerraformCluster/acme/prod/{OWNER.uid}"
    assert told in runner_arguments(order())
    assert not [each for each in runner_arguments(order(tells_events=False)) if "event-object" in each]


@pytest.mark.parametrize(
    "wrong",
    [
        order(guards_deletes=True, plan_key=""),
        order(PLAN, plan_key=""),
        order(RESTORE),
        order(APPLY, backup=BACKUP),
        order(Operation.DRIFT, guards_deletes=True),
    ],
)
def test_an_order_that_the_runner_would_refuse_is_a_bug(wrong: Order) -> None:
    with pytest.raises(Bug):
        build_job(wrong)


@given(
    kind=st.sampled_from(Kind),
    name=st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True),
    operation=st.sampled_from(JOB_OPERATIONS),
    attempt=st.integers(1, 10**6),
)
def test_a_name_leaves_room_for_its_pods(kind: Kind, name: str, operation: Operation, attempt: int) -> None:
    owner = Owner(kind=kind, namespace="acme", name=name, uid="u")
    made = order(owner=owner, identity=Identity(operation, attempt, OLD)).name
    assert len(made) <= 57
    assert made == order(owner=owner, identity=Identity(operation, attempt, OLD)).name


SEEN = settled(inputs_hash=NEW, restore=RestoreRequest(7, "captf-state-backup-x-c-7", "h2:backup"))


@pytest.mark.parametrize(
    ("run", "inputs_hash", "tick"),
    [
        (Run(APPLY, Reason.INPUTS_CHANGED), NEW, ""),
        (Run(PLAN, Reason.DRIFT_REMEDIATION), NEW, ""),
        (Run(APPLY, Reason.DRIFT_REMEDIATION), NEW, "remediate/2026-11-30T18:00:40Z"),
        (Run(Operation.REFRESH, Reason.HEALTH_CHECK_DUE), OLD, "2026-11-30T18:00:40Z"),
        (Run(Operation.DRIFT, Reason.DRIFT_DUE), OLD, "2026-11-30T18:00:40Z"),
        (Run(Operation.DESTROY, Reason.DELETING), OLD, ""),
        (Run(RESTORE, Reason.RESTORE_REQUESTED), "h2:backup", "restore/captf-state-backup-x-c-7"),
    ],
)
def test_what_a_job_is_named_after(run: Run, inputs_hash: str, tick: str) -> None:
    assert identify(run, SEEN, attempt=4) == Identity(run.op, 4, inputs_hash, tick)


def test_a_refresh_keeps_its_name_until_one_succeeds() -> None:
    run = Run(Operation.REFRESH, Reason.HEALTH_CHECK_DUE)
    again = replace(SEEN, last_drift_check=NOW, last_apply=NOW)
    later = replace(SEEN, last_refresh=Instant(NOW + 5000))
    assert identify(run, SEEN, attempt=1) == identify(run, again, attempt=1)
    assert identify(run, SEEN, attempt=1) != identify(run, later, attempt=1)
    assert identify(run, replace(SEEN, last_refresh=None), attempt=1).tick == ""


def test_a_decision_that_no_job_carries_out_is_a_bug() -> None:
    with pytest.raises(Bug):
        identify(Run(Operation.FORCE_UNLOCK, Reason.DELETING), SEEN, attempt=1)
    with pytest.raises(Bug):
        identify(Run(RESTORE, Reason.RESTORE_REQUESTED), settled(), attempt=1)


@pytest.mark.parametrize(
    ("change", "adoption"),
    [
        ({}, Adoption.OURS),
        ({"deletionTimestamp": "2026-11-30T18:00:40Z"}, Adoption.LEAVING),
        ({"ownerReferences": [{"uid": "another", "controller": True}]}, Adoption.LEAVING),
        ({"ownerReferences": []}, Adoption.LEAVING),
        ({"labels": {}}, Adoption.LEAVING),
    ],
)
def test_a_job_of_the_name_is_adopted_only_from_the_same_object(change: dict[str, Any], adoption: Adoption) -> None:
    document = job_document()
    document["metadata"] |= change
    assert adopt(document, order()) is adoption


def test_a_job_that_is_over_is_not_gone_on_with() -> None:
    assert adopt(job_document(conditions={"Failed": "BackoffLimitExceeded"}), order()) is Adoption.ENDED
    assert adopt(job_document(conditions={"FailureTarget": "DeadlineExceeded"}), order()) is Adoption.OURS


@pytest.mark.parametrize(
    ("metadata", "step"),
    [
        (None, SecretStep.CREATE),
        ({"ownerReferences": [{"uid": "job-uid"}]}, SecretStep.KEEP),
        ({"ownerReferences": [{"uid": "earlier"}]}, SecretStep.REPLACE),
        ({"ownerReferences": [{"uid": "job-uid"}, {"uid": "earlier"}]}, SecretStep.REPLACE),
        ({"ownerReferences": [{"uid": "job-uid"}], "deletionTimestamp": "2026-11-30T18:00:40Z"}, SecretStep.REPLACE),
        ({}, SecretStep.REPLACE),
    ],
)
def test_a_secret_of_another_job_would_go_with_it(metadata: dict[str, Any] | None, step: SecretStep) -> None:
    existing = None if metadata is None else {"metadata": metadata}
    assert secret_step(existing, job_uid="job-uid") is step
