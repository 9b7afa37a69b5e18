"""What the manager's objects in the cluster are called, and which labels and annotations they carry.

Every name is a function of what it is for, so that making an object twice finds the first. The encodings that go into
hashes are ours and are defined here and nowhere else: a change of one orphans what was made under the old one, which
is why `tests/golden/kube/names.json` holds them. Nothing here decides; nothing here does I/O.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.terraform.steps import Operation

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

LONGEST_JOB_NAME = 57
"""A pod of the Job adds 6 characters, and its host name is cut at 63: a lock then names its whole pod."""
LONGEST_OBJECT_NAME = 253
LONGEST_LABEL_VALUE = 63
_HASH = 16
_JOB_HASH = 6


class Kind(StrEnum):
    """The kinds that run a module."""

    CLUSTER = "TerraformCluster"
    MACHINE = "TerraformMachine"
    MACHINE_POOL = "TerraformMachinePool"

    @property
    def short(self) -> str:
        """How names show the kind."""
        return _SHORT[self]

    @property
    def finalizer(self) -> str:
        """What holds an object of this kind until its infrastructure is gone."""
        return f"{self.value.lower()}.{GROUP}"


_SHORT = {Kind.CLUSTER: "c", Kind.MACHINE: "m", Kind.MACHINE_POOL: "mp"}


class Label:
    """Keys of labels."""

    MANAGED = "captf.io/managed"
    OWNER_KIND = f"captf.{GROUP}/owner-kind"
    OWNER_NAME = f"captf.{GROUP}/owner-name"
    OPERATION = f"captf.{GROUP}/op"
    ATTEMPT = f"captf.{GROUP}/attempt"
    CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
    LEASE = "captf.io/lease"
    MIRRORED = "captf.io/mirrored"
    RUNNER = "captf.io/runner"
    VARIABLES = "captf.io/variables"
    MOVE = "clusterctl.cluster.x-k8s.io/move"
    STATE_BACKUP = "captf.io/state-backup"
    STATE_BACKUP_SUFFIX = "captf.io/state-backup-suffix"
    RETAINED_FROM_UID = "captf.io/retained-from-uid"
    PLAN_PHASE = "captf.io/plan-phase"
    PLAN_REASON = "captf.io/plan-reason"
    DESTRUCTIVE = "captf.io/destructive"


class Annotation:
    """Keys of annotations."""

    RESTORE_STATE = "captf.io/restore-state"
    CONFIRM_NO_RESOURCES = "captf.io/confirm-no-resources"
    ENDPOINT_SOURCE = "captf.io/endpoint-source"
    REMEDIATION_REQUESTED = "captf.io/remediation-requested"
    BLOCK_MOVE = "clusterctl.cluster.x-k8s.io/block-move"
    DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"
    MANAGED_BY = "cluster.x-k8s.io/managed-by"
    PAUSED = "cluster.x-k8s.io/paused"
    CLONED_FROM_NAME = "cluster.x-k8s.io/cloned-from-name"
    TOPOLOGY_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
    INPUTS_HASH = "captf.io/inputs-hash"
    IMAGE = "captf.io/image"
    IMAGE_DIGEST = "captf.io/image-digest"
    IDENTITY = "captf.io/identity"
    IDENTITY_KIND = "captf.io/identity-kind"
    JOB = "captf.io/job"
    MAY_HAVE_APPLIED = "captf.io/may-have-applied"
    APPLIED = "captf.io/applied"
    UNCONFIRMED_APPLY = "captf.io/unconfirmed-apply"
    SOURCE_HASH = "captf.io/source-hash"
    LEASE_OPERATION = "captf.io/lease-op"
    LEASE_ACQUIRED_AT = "captf.io/lease-acquired-at"
    BOOKKEPT = "captf.io/bookkept"
    INTERRUPTED = "captf.io/interrupted"
    DRIFT_REMEDIATION = "captf.io/drift-remediation"
    DESTRUCTIVE_PLAN_BLOCKED = "captf.io/destructive-plan-blocked"
    PLAN_CHANGED = "captf.io/plan-changed"
    PLAN_UNREADABLE = "captf.io/plan-unreadable"
    PLAN_HASH = "captf.io/plan-hash"
    APPROVED_PLAN = "captf.io/approved-plan"
    PLAN = "captf.io/plan"
    AFTER_FAILED_APPLY = "captf.io/after-failed-apply"
    AFTER_INTERRUPTED_APPLY = "captf.io/after-interrupted-apply"
    RESTORE_SERIAL = "captf.io/restore-serial"
    STATE_BACKUP_SERIAL = "captf.io/state-backup-serial"
    STATE_BACKUP_LINEAGE = "captf.io/state-backup-lineage"
    STATE_BACKUP_TAKEN_AT = "captf.io/state-backup-taken-at"
    STATE_BACKUP_SOURCE_JOB = "captf.io/state-backup-source-job"
    STATE_BACKUP_DIGEST = "captf.io/state-backup-digest"
    STATE_BACKUP_RESOURCES = "captf.io/state-backup-resources"
    STATE_BACKUP_SET = "captf.io/state-backup-set"
    STATE_BACKUP_CHUNK = "captf.io/state-backup-chunk"
    STATE_BACKUP_CHUNKS = "captf.io/state-backup-chunks"


class LeaseRole(StrEnum):
    """What a lease of ours protects: the value of its label `captf.io/lease`."""

    RUN = "run"
    CLUSTER = "cluster"


RUNNER = "captf-runner"
"""The runner's service account, role binding and cluster role."""
LEADER_LEASE = "controller-leader-election-captf"
MAIN_FILE = "main.tf.json"
VARIABLES_FILE = "terraform.tfvars.json"
STATE_KEY = "tfstate"
PLAN_KEY_KEY = "key"


def short_hash(text: str, length: int = _HASH) -> str:
    """The first hex digits of the SHA-256 of a text in UTF-8."""
    return sha256(text.encode()).hexdigest()[:length]


def state_suffix(kind: Kind, *, namespace: str, name: str) -> str:
    """What tells one object's state from another's; the backend's `secret_suffix`."""
    return f"{short_hash(f'{namespace}/{kind.value}/{name}')}-{kind.short}"


def state_secret(suffix: str, part: int = 0) -> str:
    """A chunk of the state: the base Secret, then `-part-1` and on."""
    return f"tfstate-default-{suffix}" + (f"-part-{part}" if part else "")


def state_lock(suffix: str) -> str:
    """The Lease that is Terraform's own lock."""
    return f"lock-tfstate-default-{suffix}"


def run_lease(suffix: str) -> str:
    """One Job at a time for one object."""
    return f"captf-run-{suffix}"


def cluster_lease(*, namespace: str, cluster: str) -> str:
    """What a cluster's writing operations hold against those of its machines and pools."""
    return f"captf-cluster-{short_hash(f'{namespace}/{cluster}')}"


def inputs_secret(kind: Kind, name: str) -> str:
    """The record of the newest attempt."""
    return _fitting(f"captf-inputs-{kind.short}-", name)


def applied_secret(kind: Kind, name: str) -> str:
    """The record of the newest successful apply."""
    return _fitting(f"captf-applied-{kind.short}-", name)


def plan_key_secret(kind: Kind, name: str) -> str:
    """The key under which plans are fingerprinted."""
    return _fitting(f"captf-plankey-{kind.short}-", name)


def run_secret(job: str) -> str:
    """What one Job reads: its root module and its variables; the runner writes its result there too."""
    return _fitting("captf-run-", job)


def credentials_mirror(identity: str) -> str:
    """The copy of an identity's credentials in a namespace that uses it."""
    return _fitting("captf-creds-", identity)


def backup_secret(suffix: str, serial: int, part: int = 0) -> str:
    """A chunk of the backup of one state serial."""
    return f"captf-state-backup-{suffix}-{serial}" + (f"-part-{part}" if part else "")


def job_hash(*, inputs_hash: str, operation: Operation, attempt: int, tick: str = "") -> str:
    """The last part of a Job's name: the four fields, one a line, none of which can hold a line's end."""
    return short_hash("\n".join((inputs_hash, operation.value, str(attempt), tick)), _JOB_HASH)


def job_name(kind: Kind, name: str, operation: Operation, *, attempt: int, inputs_hash: str, tick: str = "") -> str:
    """The name of the Job that does an operation for the `attempt`-th time.

    `tick` tells a repeated operation on the same inputs from the one before: `remediate_tick`, `restore_tick`, the
    time of the last successful refresh or drift check, or nothing.
    """
    digest = job_hash(inputs_hash=inputs_hash, operation=operation, attempt=attempt, tick=tick)
    end = f"-{operation.value}-a{attempt}-{digest}"
    whole = f"captf-{kind.short}-{name}{end}"
    return whole if len(whole) <= LONGEST_JOB_NAME else f"captf-{kind.short}-{short_hash(name)}{end}"


def remediate_tick(last_drift_check: str) -> str:
    """The tick of an apply that reverts drift; the time as the status has it."""
    return f"remediate/{last_drift_check}"


def restore_tick(backup: str) -> str:
    """The tick of a restore, by the name of the backup's first Secret."""
    return f"restore/{backup}"


def label_value(value: str) -> str:
    """A name as a label's value: one that is too long becomes its hash."""
    return value if len(value) <= LONGEST_LABEL_VALUE else short_hash(value)


def owner_labels(kind: Kind, name: str, cluster: str) -> dict[str, str]:
    """The labels of whatever the manager makes for an object; `cluster` is empty when the object has none yet."""
    labels = {Label.MANAGED: "true", Label.OWNER_KIND: kind.value, Label.OWNER_NAME: label_value(name)}
    return {**labels, Label.CLUSTER_NAME: label_value(cluster)} if cluster else labels


def job_labels(kind: Kind, name: str, cluster: str, operation: Operation, attempt: int) -> dict[str, str]:
    """The labels of a Job and of its pods."""
    return {
        **owner_labels(kind, name, cluster),
        Label.OPERATION: operation.value,
        Label.ATTEMPT: str(attempt),
    }


def lease_labels(kind: Kind, name: str, cluster: str, role: LeaseRole) -> dict[str, str]:
    """The labels of a lease of ours; the state's own lock has no `captf.io/lease`."""
    return {**owner_labels(kind, name, cluster), Label.LEASE: role.value}


def state_labels(kind: Kind, name: str, cluster: str) -> dict[str, str]:
    """The labels in the backend's configuration, by all of which it selects: they must never change."""
    return {**owner_labels(kind, name, cluster), Label.MOVE: ""}


def selector(labels: Mapping[str, str]) -> str:
    """The selector, as the API takes it, of what has all these labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _fitting(prefix: str, name: str) -> str:
    whole = prefix + name
    return whole if len(whole) <= LONGEST_OBJECT_NAME else prefix + short_hash(name)
