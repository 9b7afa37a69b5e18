"""The types of conditions, the reasons that each may have, and the status that each reason stands for.

Both are closed: a reason that is not in the table cannot be said. Waiting is `Unknown`; what needs somebody, or went
wrong, is `False`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


class Type(StrEnum):
    """What is said something about."""

    READY = "Ready"
    DEPENDENCIES_READY = "DependenciesReady"
    IDENTITY_ALLOWED = "IdentityAllowed"
    CREDENTIALS_MIRRORED = "CredentialsMirrored"
    RUNNER_RBAC_READY = "RunnerRBACReady"
    APPLY_JOB_SUCCEEDED = "ApplyJobSucceeded"
    STATE_READABLE = "StateReadable"
    RESTORE_JOB_SUCCEEDED = "RestoreJobSucceeded"
    OUTPUTS_VALID = "OutputsValid"
    INFRASTRUCTURE_HEALTHY = "InfrastructureHealthy"
    INPUTS_APPLIED = "InputsApplied"
    DRIFT_JOB_SUCCEEDED = "DriftJobSucceeded"
    DRIFT_DETECTED = "DriftDetected"
    DELETION_BLOCKED = "DeletionBlocked"
    ENDPOINT_AVAILABLE = "EndpointAvailable"
    AUTOSCALING_ACTIVE = "AutoscalingActive"
    PAUSED = "Paused"
    DELETING = "Deleting"


class Status(StrEnum):
    """How it stands."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionReason(StrEnum):
    """Why a condition stands as it does."""

    APPLY_FAILED = "ApplyFailed"
    APPLY_OUTCOME_UNKNOWN = "ApplyOutcomeUnknown"
    APPLY_PENDING = "ApplyPending"
    APPLY_RUNNING = "ApplyRunning"
    APPLY_SUCCEEDED = "ApplySucceeded"
    AUTOSCALING_ANNOTATIONS_INVALID = "AutoscalingAnnotationsInvalid"
    AUTOSCALING_DISABLED = "AutoscalingDisabled"
    AWAITING_APPROVAL = "AwaitingApproval"
    CLUSTER_NOT_TERRAFORM = "ClusterNotTerraform"
    CREDENTIALS_INCOMPLETE = "CredentialsIncomplete"
    DELETING = "Deleting"
    DELETION_POLICY_UNRESOLVED = "DeletionPolicyUnresolved"
    DEPENDENCIES_READY = "DependenciesReady"
    DEPENDENTS_EXIST = "DependentsExist"
    DESTROY_FAILED = "DestroyFailed"
    DESTROY_SUCCEEDED = "DestroySucceeded"
    DESTRUCTIVE_PLAN_BLOCKED = "DestructivePlanBlocked"
    DRIFT_CHECKED = "DriftChecked"
    DRIFT_JOB_DEADLINE_EXCEEDED = "DriftJobDeadlineExceeded"
    DRIFT_JOB_FAILED = "DriftJobFailed"
    DRIFT_JOB_RUNNING = "DriftJobRunning"
    DRIFT_NOT_CHECKED = "DriftNotChecked"
    DRIFT_PENDING = "DriftPending"
    DRIFT_REMEDIATING = "DriftRemediating"
    DRIFT_REPORTED = "DriftReported"
    DURABLE_INPUTS_MISSING = "DurableInputsMissing"
    ENDPOINT_AVAILABLE = "EndpointAvailable"
    FAILURE_DOMAIN_MISMATCH = "FailureDomainMismatch"
    HEALTH_UNKNOWN = "HealthUnknown"
    HEALTHY = "Healthy"
    IDENTITY_ALLOWED = "IdentityAllowed"
    IDENTITY_CHECK_FAILED = "IdentityCheckFailed"
    IDENTITY_NOT_ALLOWED = "IdentityNotAllowed"
    IDENTITY_NOT_FOUND = "IdentityNotFound"
    IMAGE_INVALID = "ImageInvalid"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    INPUTS_APPLIED = "InputsApplied"
    INPUTS_APPLY_FAILED = "InputsApplyFailed"
    INPUTS_TOO_LARGE = "InputsTooLarge"
    INPUTS_UNAVAILABLE = "InputsUnavailable"
    INSTANCE_DEGRADED = "InstanceDegraded"
    INSTANCE_PENDING = "InstancePending"
    INSTANCE_STOPPED = "InstanceStopped"
    INSTANCE_TERMINATED = "InstanceTerminated"
    INSTANCE_UNHEALTHY = "InstanceUnhealthy"
    INSTANCES_TRUNCATED = "InstancesTruncated"
    JOB_DEADLINE_EXCEEDED = "JobDeadlineExceeded"
    JOB_POLICY_INVALID = "JobPolicyInvalid"
    LOCAL_SECRET = "LocalSecret"
    MIRROR_FAILED = "MirrorFailed"
    MIRROR_PENDING = "MirrorPending"
    MIRRORED = "Mirrored"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    NO_APPLY_YET = "NoApplyYet"
    NO_DRIFT = "NoDrift"
    NOT_BLOCKED = "NotBlocked"
    NOT_DELETING = "NotDeleting"
    NOT_PAUSED = "NotPaused"
    NOT_READY = "NotReady"
    OUTPUTS_INVALID = "OutputsInvalid"
    OUTPUTS_MISSING = "OutputsMissing"
    OUTPUTS_PENDING = "OutputsPending"
    OUTPUTS_VALID = "OutputsValid"
    OWNER_MISMATCH = "OwnerMismatch"
    OWNER_NOT_FOUND = "OwnerNotFound"
    PAUSED = "Paused"
    PLAN_AWAITING_APPROVAL = "PlanAwaitingApproval"
    PLAN_CHANGED = "PlanChanged"
    PROVIDER_ID_CHANGED = "ProviderIDChanged"
    PROVIDER_ID_MISSING = "ProviderIDMissing"
    PROVISIONING = "Provisioning"
    RBAC_FAILED = "RBACFailed"
    RBAC_READY = "RBACReady"
    READY = "Ready"
    READY_UNKNOWN = "ReadyUnknown"
    REPLICAS_MANAGED_BY_MODULE = "ReplicasManagedByModule"
    REPLICAS_MANAGED_EXTERNALLY = "ReplicasManagedExternally"
    RESTORE_BACKUP_NOT_FOUND = "RestoreBackupNotFound"
    RESTORE_FAILED = "RestoreFailed"
    RETAINED_STATE_FOUND = "RetainedStateFound"
    SECRET_FOUND = "SecretFound"
    SECRET_NOT_FOUND = "SecretNotFound"
    SERVICE_ACCOUNT_NOT_OPTED_IN = "ServiceAccountNotOptedIn"
    STATE_CORRUPT = "StateCorrupt"
    STATE_ENCRYPTED = "StateEncrypted"
    STATE_INCONSISTENT = "StateInconsistent"
    STATE_LOCKED = "StateLocked"
    STATE_LOST = "StateLost"
    STATE_NOT_FOUND = "StateNotFound"
    STATE_READ = "StateRead"
    STATE_RESTORED = "StateRestored"
    VARIABLES_INVALID = "VariablesInvalid"
    VARIABLES_SOURCE_NOT_FOUND = "VariablesSourceNotFound"
    WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData"
    WAITING_FOR_CLUSTER_EXPORTS = "WaitingForClusterExports"
    WAITING_FOR_CLUSTER_INFRASTRUCTURE = "WaitingForClusterInfrastructure"
    WAITING_FOR_CLUSTER_OPERATION = "WaitingForClusterOperation"
    WAITING_FOR_ENDPOINT = "WaitingForEndpoint"
    WAITING_FOR_JOB_SLOT = "WaitingForJobSlot"
    WAITING_FOR_MACHINE_OPERATIONS = "WaitingForMachineOperations"
    WAITING_FOR_OWNER = "WaitingForOwner"
    WAITING_FOR_OWNER_MACHINE = "WaitingForOwnerMachine"
    WAITING_FOR_OWNER_MACHINE_POOL = "WaitingForOwnerMachinePool"
    WAITING_FOR_PROVISIONING = "WaitingForProvisioning"
    WAITING_FOR_RUN_LEASE = "WaitingForRunLease"


_R = ConditionReason
_LEASES: Final = (
    _R.WAITING_FOR_CLUSTER_OPERATION,
    _R.WAITING_FOR_MACHINE_OPERATIONS,
    _R.WAITING_FOR_RUN_LEASE,
    _R.WAITING_FOR_JOB_SLOT,
)


def _table(
    *,
    true: Iterable[ConditionReason] = (),
    false: Iterable[ConditionReason] = (),
    unknown: Iterable[ConditionReason] = (),
) -> dict[ConditionReason, Status]:
    named = ((Status.TRUE, true), (Status.FALSE, false), (Status.UNKNOWN, unknown))
    return {reason: status for status, reasons in named for reason in reasons}


REASONS: Final[dict[Type, dict[ConditionReason, Status]]] = {
    Type.READY: _table(
        true=(
            _R.READY,
            _R.SECRET_FOUND,
        ),
        false=(
            _R.NOT_READY,
            _R.SECRET_NOT_FOUND,
            _R.CREDENTIALS_INCOMPLETE,
        ),
        unknown=(_R.READY_UNKNOWN,),
    ),
    Type.DEPENDENCIES_READY: _table(
        true=(_R.DEPENDENCIES_READY,),
        false=(
            _R.CLUSTER_NOT_TERRAFORM,
            _R.OWNER_MISMATCH,
            _R.OWNER_NOT_FOUND,
            _R.VARIABLES_INVALID,
            _R.VARIABLES_SOURCE_NOT_FOUND,
            _R.WAITING_FOR_OWNER_MACHINE,
            _R.WAITING_FOR_OWNER_MACHINE_POOL,
        ),
        unknown=(
            _R.WAITING_FOR_OWNER,
            _R.WAITING_FOR_CLUSTER_INFRASTRUCTURE,
            _R.WAITING_FOR_CLUSTER_EXPORTS,
            _R.WAITING_FOR_BOOTSTRAP_DATA,
        ),
    ),
    Type.IDENTITY_ALLOWED: _table(
        true=(
            _R.IDENTITY_ALLOWED,
            _R.LOCAL_SECRET,
        ),
        false=(
            _R.IDENTITY_NOT_FOUND,
            _R.NAMESPACE_NOT_ALLOWED,
            _R.SECRET_NOT_FOUND,
            _R.CREDENTIALS_INCOMPLETE,
        ),
        unknown=(_R.IDENTITY_CHECK_FAILED,),
    ),
    Type.CREDENTIALS_MIRRORED: _table(
        true=(_R.MIRRORED,),
        false=(_R.MIRROR_FAILED,),
        unknown=(_R.MIRROR_PENDING,),
    ),
    Type.RUNNER_RBAC_READY: _table(
        true=(_R.RBAC_READY,),
        false=(
            _R.RBAC_FAILED,
            _R.SERVICE_ACCOUNT_NOT_OPTED_IN,
        ),
    ),
    Type.APPLY_JOB_SUCCEEDED: _table(
        true=(
            _R.APPLY_SUCCEEDED,
            _R.DESTROY_SUCCEEDED,
        ),
        false=(
            _R.APPLY_FAILED,
            _R.DESTROY_FAILED,
            _R.DESTRUCTIVE_PLAN_BLOCKED,
            _R.IDENTITY_NOT_ALLOWED,
            _R.IMAGE_INVALID,
            _R.IMAGE_PULL_FAILED,
            _R.INPUTS_TOO_LARGE,
            _R.JOB_DEADLINE_EXCEEDED,
            _R.JOB_POLICY_INVALID,
        ),
        unknown=(
            _R.NO_APPLY_YET,
            _R.PLAN_AWAITING_APPROVAL,
            _R.PLAN_CHANGED,
            *_LEASES,
        ),
    ),
    Type.STATE_READABLE: _table(
        true=(_R.STATE_READ,),
        false=(
            _R.STATE_CORRUPT,
            _R.STATE_ENCRYPTED,
            _R.STATE_INCONSISTENT,
            _R.STATE_LOCKED,
            _R.STATE_LOST,
            _R.RETAINED_STATE_FOUND,
            _R.APPLY_OUTCOME_UNKNOWN,
        ),
        unknown=(_R.STATE_NOT_FOUND,),
    ),
    Type.RESTORE_JOB_SUCCEEDED: _table(
        true=(_R.STATE_RESTORED,),
        false=(
            _R.RESTORE_BACKUP_NOT_FOUND,
            _R.RESTORE_FAILED,
        ),
        unknown=(*_LEASES,),
    ),
    Type.OUTPUTS_VALID: _table(
        true=(
            _R.OUTPUTS_VALID,
            _R.INSTANCES_TRUNCATED,
        ),
        false=(
            _R.FAILURE_DOMAIN_MISMATCH,
            _R.OUTPUTS_INVALID,
            _R.OUTPUTS_MISSING,
            _R.PROVIDER_ID_CHANGED,
        ),
        unknown=(_R.OUTPUTS_PENDING,),
    ),
    Type.INFRASTRUCTURE_HEALTHY: _table(
        true=(_R.HEALTHY,),
        false=(
            _R.INSTANCE_DEGRADED,
            _R.INSTANCE_PENDING,
            _R.INSTANCE_STOPPED,
            _R.INSTANCE_TERMINATED,
            _R.INSTANCE_UNHEALTHY,
            _R.PROVISIONING,
        ),
        unknown=(
            _R.HEALTH_UNKNOWN,
            _R.PROVIDER_ID_MISSING,
            _R.WAITING_FOR_PROVISIONING,
        ),
    ),
    Type.INPUTS_APPLIED: _table(
        true=(_R.INPUTS_APPLIED,),
        false=(
            _R.APPLY_PENDING,
            _R.AWAITING_APPROVAL,
            _R.APPLY_RUNNING,
            _R.INPUTS_APPLY_FAILED,
        ),
        unknown=(_R.INPUTS_UNAVAILABLE,),
    ),
    Type.DRIFT_JOB_SUCCEEDED: _table(
        true=(_R.DRIFT_CHECKED,),
        false=(
            _R.DRIFT_JOB_DEADLINE_EXCEEDED,
            _R.DRIFT_JOB_FAILED,
        ),
        unknown=(
            _R.DRIFT_JOB_RUNNING,
            _R.DRIFT_NOT_CHECKED,
            _R.DURABLE_INPUTS_MISSING,
            _R.WAITING_FOR_RUN_LEASE,
            _R.WAITING_FOR_JOB_SLOT,
        ),
    ),
    Type.DRIFT_DETECTED: _table(
        true=(
            _R.DRIFT_PENDING,
            _R.DRIFT_REMEDIATING,
            _R.DRIFT_REPORTED,
        ),
        false=(_R.NO_DRIFT,),
        unknown=(_R.DRIFT_NOT_CHECKED,),
    ),
    Type.DELETION_BLOCKED: _table(
        true=(_R.DEPENDENTS_EXIST,),
        false=(_R.NOT_BLOCKED,),
    ),
    Type.ENDPOINT_AVAILABLE: _table(
        true=(_R.ENDPOINT_AVAILABLE,),
        false=(_R.WAITING_FOR_ENDPOINT,),
    ),
    Type.AUTOSCALING_ACTIVE: _table(
        true=(_R.REPLICAS_MANAGED_BY_MODULE,),
        false=(
            _R.AUTOSCALING_ANNOTATIONS_INVALID,
            _R.AUTOSCALING_DISABLED,
            _R.REPLICAS_MANAGED_EXTERNALLY,
        ),
    ),
    Type.PAUSED: _table(
        true=(_R.PAUSED,),
        false=(_R.NOT_PAUSED,),
    ),
    Type.DELETING: _table(
        true=(
            _R.DELETING,
            _R.DELETION_POLICY_UNRESOLVED,
        ),
        false=(_R.NOT_DELETING,),
    ),
}
"""Every reason that a condition may have, and the status that it stands for there."""
