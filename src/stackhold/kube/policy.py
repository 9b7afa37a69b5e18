"""How an object's Jobs run: its policy merged over its cluster's, and whether the two clocks in it fit together.

Nothing here is kept: the policy is merged anew at every reconcile, so a change of a cluster's defaults reaches its
machines and pools without touching them. A policy is a plain document, as the API server keeps it.

There are two checks. `problems` looks at one policy as somebody wrote it, against the built-in default of what it does
not say; admission asks it. `refusal` looks at what was merged from several, which only the controller can see, before
a Job starts; a destroy and a restore never wait for it, so that a mistake in a policy cannot wedge a teardown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.api.rules import (
    DEADLINE_RANGE,
    DEFAULT_DEADLINE,
    DEFAULT_HISTORY,
    DEFAULT_LOCK_TIMEOUT,
    LOCK_TIMEOUT_RANGE,
)
from stackhold.kube.confinement import weakenings
from stackhold.kube.names import Kind
from stackhold.model.instant import MINUTE, Millis

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackhold.model.values import JsonMap

RECHECK_AFTER = Millis(10 * MINUTE)
"""How long a refused object waits; a change to it or to its cluster wakes it sooner."""
RESERVED_VARIABLES = ("TF_", "KUBE_")
"""Variables with these beginnings belong to the runner and to the Job: they are taken and left out."""
DEFAULT_RESOURCES: JsonMap = {
    "requests": {"cpu": "250m", "memory": "512Mi"},
    "limits": {"memory": "2Gi"},
}
"""No limit of CPU on purpose: a throttled apply is worse than a slow one."""

_DEADLINE, _LOCK_TIMEOUT = "activeDeadlineSeconds", "lockTimeoutSeconds"
_SUCCESSFUL, _FAILED = "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
_UNCHECKED = frozenset({Operation.DESTROY, Operation.RESTORE})


@dataclass(frozen=True, slots=True)
class Layer:
    """A policy and where it is written, such as `spec.defaults.jobs of TerraformCluster prod`."""

    place: str
    policy: JsonMap


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """The policies of the TerraformCluster that a machine or a pool belongs to."""

    name: str
    own: JsonMap | None = None
    defaults: JsonMap | None = None

    @classmethod
    def of(cls, name: str, spec: JsonMap) -> ClusterPolicies:
        """From the `spec` of a TerraformCluster."""
        return cls(name, own=_child(spec, "jobs"), defaults=_child(_child(spec, "defaults") or {}, "jobs"))


@dataclass(frozen=True, slots=True)
class Setting:
    """A number of a policy, with where it comes from; no place for a built-in default."""

    field: str
    value: int
    place: str = ""

    def __str__(self) -> str:
        """How messages name it."""
        if not self.place:
            return f"{self.field} (built-in default {self.value})"
        return f"{self.field} (configured {self.value} in {self.place})"


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """What Jobs of one object run under."""

    deadline: Setting
    lock_timeout: Setting
    successful_history: Setting
    failed_history: Setting
    service_account: str | None
    """The name of an account that somebody provides; None for the manager's own."""
    image_pull_secrets: tuple[str, ...]
    resources: JsonMap
    env: tuple[JsonMap, ...]
    """The variables that reach the main container: those with reserved names are gone."""
    security_context: JsonMap | None
    pod_security_context: JsonMap | None


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a part of a document, and where."""

    path: str
    message: str

    def __str__(self) -> str:
        """As one line."""
        return f"{self.path}: {self.message}"


def layers(kind: Kind, own: JsonMap | None, cluster: ClusterPolicies | None) -> tuple[Layer, ...]:
    """The policies that apply to an object, the strongest first.

    A cluster has only its own: what it sets as defaults is for its machines and pools. One whose cluster is not known
    goes by its own alone.
    """
    found = [Layer("spec.jobs", own)] if own else []
    if kind is Kind.CLUSTER or cluster is None:
        return tuple(found)
    whose = f"of {Kind.CLUSTER.value} {cluster.name}"
    if cluster.defaults:
        found.append(Layer(f"spec.defaults.jobs {whose}", cluster.defaults))
    if cluster.own:
        found.append(Layer(f"spec.jobs {whose}", cluster.own))
    return tuple(found)


def merge(strongest_first: Sequence[Layer]) -> EffectivePolicy:
    """Field by field, the strongest that says something; then the built-in default.

    Variables unite by name and pull secrets unite, the strongest first; every other field is replaced as a whole.
    """
    policies = [layer.policy for layer in strongest_first]
    account = _first(policies, "serviceAccountName")
    return EffectivePolicy(
        deadline=_setting(strongest_first, _DEADLINE, DEFAULT_DEADLINE),
        lock_timeout=_setting(strongest_first, _LOCK_TIMEOUT, DEFAULT_LOCK_TIMEOUT),
        successful_history=_setting(strongest_first, _SUCCESSFUL, DEFAULT_HISTORY),
        failed_history=_setting(strongest_first, _FAILED, DEFAULT_HISTORY),
        service_account=account if isinstance(account, str) else None,
        image_pull_secrets=tuple(str(entry["name"]) for entry in _by_name(policies, "imagePullSecrets")),
        resources=_first_map(policies, "resources") or DEFAULT_RESOURCES,
        env=tuple(entry for entry in _by_name(policies, "env") if not is_reserved(str(entry["name"]))),
        security_context=_first_map(policies, "securityContext"),
        pod_security_context=_first_map(policies, "podSecurityContext"),
    )


def is_reserved(variable: str) -> bool:
    """Whether a variable's name belongs to the runner or to the Job."""
    return variable.startswith(RESERVED_VARIABLES)


def refusal(policy: EffectivePolicy, operation: Operation) -> str | None:
    """Why no Job of this operation may start under the merged policy; None when one may.

    The words are those of `ApplyJobSucceeded`, whichever operation was due.
    """
    if operation in _UNCHECKED:
        return None
    return (
        _out_of_range(policy.deadline, DEADLINE_RANGE)
        or _out_of_range(policy.lock_timeout, LOCK_TIMEOUT_RANGE)
        or (_contradiction(policy))
    )


def problems(policy: JsonMap, *, path: str) -> tuple[Problem, ...]:
    """Everything that is wrong with one policy by itself, in the words of the one who has to mend it."""
    effective = merge([Layer(path, policy)])
    found = [
        *_clock_problems(effective, path),
        *(Problem(f"{path}.securityContext.{field}", said) for field, said in weakenings(effective.security_context)),
        *(
            Problem(f"{path}.podSecurityContext.{field}", said)
            for field, said in weakenings(effective.pod_security_context, is_pod=True)
        ),
    ]
    return tuple(found)


def _clock_problems(effective: EffectivePolicy, path: str) -> Iterable[Problem]:
    """Each clock's range first: two values that are wrong by themselves need not be compared."""
    ranges = ((effective.deadline, DEADLINE_RANGE), (effective.lock_timeout, LOCK_TIMEOUT_RANGE))
    wrong = [(setting, said) for setting, allowed in ranges if (said := _out_of_range(setting, allowed))]
    yield from (Problem(f"{path}.{setting.field}", said) for setting, said in wrong)
    contradiction = None if wrong else _contradiction(effective)
    if contradiction:
        field = _LOCK_TIMEOUT if effective.lock_timeout.place else _DEADLINE
        yield Problem(f"{path}.{field}", contradiction)


def _contradiction(policy: EffectivePolicy) -> str | None:
    """A Job must not reach its deadline while a step of it still waits for a lock."""
    if policy.lock_timeout.value < policy.deadline.value:
        return None
    return f"{policy.lock_timeout} must be less than {policy.deadline}; lower {_LOCK_TIMEOUT} or raise {_DEADLINE}"


def _out_of_range(setting: Setting, allowed: tuple[int, int]) -> str | None:
    lowest, highest = allowed
    return None if lowest <= setting.value <= highest else f"{setting} must be from {lowest} to {highest}"


def _setting(strongest_first: Sequence[Layer], field: str, default: int) -> Setting:
    for layer in strongest_first:
        value = layer.policy.get(field)
        if isinstance(value, int):
            return Setting(field, value, layer.place)
    return Setting(field, default)


def _first(policies: Iterable[JsonMap], field: str) -> object:
    """What the strongest policy says that says anything."""
    return next((policy[field] for policy in policies if policy.get(field) is not None), None)


def _first_map(policies: Iterable[JsonMap], field: str) -> JsonMap | None:
    found = _first(policies, field)
    return cast("JsonMap", found) if isinstance(found, dict) else None


def _by_name(policies: Iterable[JsonMap], field: str) -> tuple[JsonMap, ...]:
    """The entries of all lists, each name once, as the strongest policy has it."""
    found: dict[object, JsonMap] = {}
    for policy in policies:
        for entry in cast("Sequence[JsonMap]", policy.get(field) or ()):
            found.setdefault(entry["name"], entry)
    return tuple(found.values())


def _child(document: Mapping[str, object], key: str) -> JsonMap | None:
    found = document.get(key)
    return cast("JsonMap", found) if isinstance(found, dict) else None
