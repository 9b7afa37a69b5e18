"""The merged policy, both of its checks and their words: every row of the two tables, and what holds for any policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.names import Kind
from stackhold.kube.policy import (
    DEFAULT_RESOURCES,
    RECHECK_AFTER,
    ClusterPolicies,
    EffectivePolicy,
    Layer,
    Setting,
    layers,
    merge,
    problems,
    refusal,
)

Document = dict[str, Any]
CHECKED = (Operation.APPLY, Operation.PLAN, Operation.REFRESH, Operation.DRIFT)


def of(
    kind: Kind, mine: Document | None = None, *, defaults: Document | None = None, own: Document | None = None
) -> EffectivePolicy:
    """The policy of an object whose cluster `prod` has these policies."""
    return merge(layers(kind, mine, ClusterPolicies("prod", own=own, defaults=defaults)))


def clocks(deadline: int | None = None, lock_timeout: int | None = None) -> Document:
    found = {"activeDeadlineSeconds": deadline, "lockTimeoutSeconds": lock_timeout}
    return {key: value for key, value in found.items() if value is not None}


# The table of settings: defaults and ranges.


@pytest.mark.parametrize("kind", list(Kind))
def test_what_nobody_sets_has_its_built_in_default(kind: Kind) -> None:
    policy = of(kind)
    assert policy.deadline == Setting("activeDeadlineSeconds", 3600)
    assert policy.lock_timeout == Setting("lockTimeoutSeconds", 300)
    assert (policy.successful_history.value, policy.failed_history.value) == (3, 3)
    assert policy.service_account is None
    assert policy.image_pull_secrets == ()
    assert policy.env == ()
    assert policy.resources == DEFAULT_RESOURCES
    assert policy.security_context is None
    assert policy.pod_security_context is None


@pytest.mark.parametrize(
    ("policy", "field", "said"),
    [
        (clocks(deadline=0), "activeDeadlineSeconds", "from 1 to 86400"),
        (clocks(deadline=86401), "activeDeadlineSeconds", "from 1 to 86400"),
        (clocks(lock_timeout=-1), "lockTimeoutSeconds", "from 0 to 3600"),
        (clocks(deadline=86400, lock_timeout=3601), "lockTimeoutSeconds", "from 0 to 3600"),
    ],
)
def test_a_clock_out_of_its_range_is_told_with_the_range(policy: Document, field: str, said: str) -> None:
    (problem,) = problems(policy, path="spec.jobs")
    assert problem.path == f"spec.jobs.{field}"
    assert said in problem.message
    assert said in (refusal(of(Kind.MACHINE, policy), Operation.APPLY) or "")


@pytest.mark.parametrize(
    "policy",
    [
        clocks(),
        clocks(deadline=1, lock_timeout=0),
        clocks(deadline=86400, lock_timeout=3600),
        clocks(deadline=301),
        clocks(lock_timeout=3599),
        clocks(lock_timeout=0),
        clocks(deadline=3601, lock_timeout=3600),
    ],
)
def test_clocks_at_the_ends_of_their_ranges_are_taken(policy: Document) -> None:
    assert problems(policy, path="spec.jobs") == ()
    assert all(refusal(of(Kind.CLUSTER, policy), operation) is None for operation in Operation)


@pytest.mark.parametrize(
    ("policy", "lock_timeout", "deadline"),
    [
        (clocks(deadline=600, lock_timeout=600), "configured 600 in spec.jobs", "configured 600 in spec.jobs"),
        (clocks(deadline=600, lock_timeout=601), "configured 601 in spec.jobs", "configured 600 in spec.jobs"),
        (clocks(deadline=300), "built-in default 300", "configured 300 in spec.jobs"),
        (clocks(deadline=1), "built-in default 300", "configured 1 in spec.jobs"),
        (clocks(lock_timeout=3600), "configured 3600 in spec.jobs", "built-in default 3600"),
    ],
)
def test_one_policy_is_held_against_the_built_in_default_of_what_it_does_not_set(
    policy: Document, lock_timeout: str, deadline: str
) -> None:
    (problem,) = problems(policy, path="spec.jobs")
    assert problem.message.startswith(
        f"lockTimeoutSeconds ({lock_timeout}) must be less than activeDeadlineSeconds ({deadline})"
    )


# Inheritance, field by field.


@pytest.mark.parametrize("kind", [Kind.MACHINE, Kind.MACHINE_POOL])
@pytest.mark.parametrize(
    ("field", "attribute"),
    [
        ("activeDeadlineSeconds", "deadline"),
        ("lockTimeoutSeconds", "lock_timeout"),
        ("successfulJobsHistoryLimit", "successful_history"),
        ("failedJobsHistoryLimit", "failed_history"),
    ],
)
@pytest.mark.parametrize(
    ("own", "defaults", "clusters", "value", "place"),
    [
        (11, 12, 13, 11, "spec.jobs"),
        (None, 12, 13, 12, "spec.defaults.jobs of TerraformCluster prod"),
        (None, None, 13, 13, "spec.jobs of TerraformCluster prod"),
        (0, 12, 13, 0, "spec.jobs"),
        (None, None, None, None, ""),
    ],
)
def test_a_number_comes_from_the_strongest_that_sets_it(
    kind: Kind,
    field: str,
    attribute: str,
    own: int | None,
    defaults: int | None,
    clusters: int | None,
    value: int | None,
    place: str,
) -> None:
    given = [{field: each} if each is not None else {} for each in (own, defaults, clusters)]
    found = getattr(of(kind, given[0], defaults=given[1], own=given[2]), attribute)
    assert found.place == place
    assert value is None or found.value == value


@pytest.mark.parametrize(
    ("field", "attribute"),
    [
        ("resources", "resources"),
        ("securityContext", "security_context"),
        ("podSecurityContext", "pod_security_context"),
    ],
)
def test_a_map_replaces_the_whole_one_below_it(field: str, attribute: str) -> None:
    below = {field: {"requests": {"cpu": "2"}, "runAsUser": 1000}}
    policy = of(Kind.MACHINE, {field: {"limits": {"memory": "4Gi"}}}, defaults=below, own=below)
    assert getattr(policy, attribute) == {"limits": {"memory": "4Gi"}}
    assert getattr(of(Kind.MACHINE, defaults={}, own=below), attribute) == below[field]


def test_a_service_account_is_inherited() -> None:
    below = {"serviceAccountName": "team-runner"}
    assert of(Kind.MACHINE_POOL, {}, defaults=below).service_account == "team-runner"
    assert of(Kind.MACHINE_POOL, {"serviceAccountName": "mine"}, defaults=below).service_account == "mine"


def test_variables_unite_by_name_and_the_objects_own_win() -> None:
    policy = of(
        Kind.MACHINE,
        {"env": [{"name": "A", "value": "own"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]},
        defaults={"env": [{"name": "C", "value": "defaults"}, {"name": "A", "value": "defaults"}]},
        own={"env": [{"name": "C", "value": "cluster"}, {"name": "D", "value": "cluster"}]},
    )
    assert [(entry["name"], entry.get("value")) for entry in policy.env] == [
        ("A", "own"),
        ("B", None),
        ("C", "defaults"),
        ("D", "cluster"),
    ]


def test_pull_secrets_unite_without_repetition_the_objects_own_first() -> None:
    policy = of(
        Kind.MACHINE,
        {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]},
        defaults={"imagePullSecrets": [{"name": "a"}, {"name": "c"}]},
        own={"imagePullSecrets": [{"name": "d"}, {"name": "b"}]},
    )
    assert policy.image_pull_secrets == ("b", "a", "c", "d")


@pytest.mark.parametrize("name", ["TF_LOG", "TF_VAR_region", "KUBE_NAMESPACE"])
def test_a_reserved_variable_is_taken_and_left_out(name: str) -> None:
    assert problems({"env": [{"name": name, "value": "x"}]}, path="spec.jobs") == ()
    assert of(Kind.CLUSTER, {"env": [{"name": name, "value": "x"}, {"name": "TFOO", "value": "y"}]}).env == (
        {"name": "TFOO", "value": "y"},
    )


def test_a_cluster_never_inherits_its_own_defaults() -> None:
    spec = {"jobs": clocks(lock_timeout=100), "defaults": {"jobs": clocks(deadline=50, lock_timeout=10)}}
    policies = ClusterPolicies.of("prod", spec)
    policy = merge(layers(Kind.CLUSTER, policies.own, policies))
    assert policy.deadline == Setting("activeDeadlineSeconds", 3600)
    assert policy.lock_timeout == Setting("lockTimeoutSeconds", 100, "spec.jobs")
    assert merge(layers(Kind.MACHINE, None, policies)).deadline.value == 50


def test_a_machine_whose_cluster_is_not_known_goes_by_its_own_policy() -> None:
    assert layers(Kind.MACHINE, clocks(deadline=900), None) == (Layer("spec.jobs", clocks(deadline=900)),)


# The check of the merged policy.


@pytest.mark.parametrize("operation", CHECKED)
def test_a_merged_contradiction_is_refused_with_both_values_and_their_origins(operation: Operation) -> None:
    own, defaults = clocks(lock_timeout=600), clocks(deadline=500)
    assert problems(own, path="spec.jobs") == problems(defaults, path="spec.defaults.jobs") == ()
    assert refusal(of(Kind.MACHINE, own, defaults=defaults), operation) == (
        "lockTimeoutSeconds (configured 600 in spec.jobs) must be less than activeDeadlineSeconds"
        " (configured 500 in spec.defaults.jobs of TerraformCluster prod);"
        " lower lockTimeoutSeconds or raise activeDeadlineSeconds"
    )


@pytest.mark.parametrize("operation", CHECKED)
def test_a_contradiction_with_a_built_in_default_says_so(operation: Operation) -> None:
    assert refusal(of(Kind.MACHINE_POOL, own=clocks(deadline=200)), operation) == (
        "lockTimeoutSeconds (built-in default 300) must be less than activeDeadlineSeconds"
        " (configured 200 in spec.jobs of TerraformCluster prod);"
        " lower lockTimeoutSeconds or raise activeDeadlineSeconds"
    )


@pytest.mark.parametrize("operation", [Operation.DESTROY, Operation.RESTORE])
def test_a_destroy_and_a_restore_go_ahead_all_the_same(operation: Operation) -> None:
    assert refusal(of(Kind.MACHINE, clocks(deadline=10, lock_timeout=20)), operation) is None


def test_a_refused_object_is_looked_at_again_in_ten_minutes() -> None:
    assert RECHECK_AFTER == 600_000


@pytest.mark.parametrize(
    ("mended", "where"),
    [(clocks(lock_timeout=499), "own"), (clocks(deadline=601), "defaults")],
)
def test_either_of_the_two_values_can_be_mended(mended: Document, where: str) -> None:
    own, defaults = clocks(lock_timeout=600), clocks(deadline=500)
    policy = of(Kind.MACHINE, mended, defaults=defaults) if where == "own" else of(Kind.MACHINE, own, defaults=mended)
    assert refusal(policy, Operation.APPLY) is None


# Security contexts.


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"privileged": True}, "privileged"),
        ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
        ({"capabilities": {"add": ["NET_ADMIN"]}}, "capabilities.add"),
        ({"readOnlyRootFilesystem": False}, "readOnlyRootFilesystem"),
        ({"procMount": "Unmasked"}, "procMount"),
    ],
)
def test_a_container_may_not_be_weakened(context: Document, field: str) -> None:
    (problem,) = problems({"securityContext": context}, path="spec.jobs")
    assert problem.path == f"spec.jobs.securityContext.{field}"


@pytest.mark.parametrize("where", ["securityContext", "podSecurityContext"])
@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"runAsNonRoot": False}, "runAsNonRoot"),
        ({"runAsUser": 0}, "runAsUser"),
        ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile.type"),
        ({"appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile.type"),
        ({"windowsOptions": {"hostProcess": True}}, "windowsOptions.hostProcess"),
        ({"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions.type"),
        ({"seLinuxOptions": {"user": "system_u"}}, "seLinuxOptions.user"),
        ({"seLinuxOptions": {"role": "system_r"}}, "seLinuxOptions.role"),
    ],
)
def test_neither_container_nor_pod_may_be_weakened(where: str, context: Document, field: str) -> None:
    (problem,) = problems({where: context}, path="spec.defaults.jobs")
    assert problem.path == f"spec.defaults.jobs.{where}.{field}"


def test_an_unsafe_sysctl_is_named() -> None:
    context = {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}, {"name": "kernel.msgmax", "value": "1"}]}
    (problem,) = problems({"podSecurityContext": context}, path="spec.jobs")
    assert problem.path == "spec.jobs.podSecurityContext.sysctls[1]"
    assert problem.message.startswith("kernel.msgmax ")


def test_a_context_that_says_nothing_weak_is_taken() -> None:
    container = {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "seLinuxOptions": {"type": "container_t", "level": "s0"},
        "privileged": False,
        "readOnlyRootFilesystem": True,
    }
    pod = {"fsGroup": 1000, "runAsUser": 1000, "runAsNonRoot": True}
    assert problems({"securityContext": container, "podSecurityContext": pod}, path="spec.jobs") == ()


def test_all_that_is_wrong_is_told_at_once() -> None:
    policy = {**clocks(deadline=100), "securityContext": {"privileged": True, "runAsUser": 0}}
    assert len(problems(policy, path="spec.jobs")) == 3


# What holds for any policies.

policies = st.fixed_dictionaries(
    {},
    optional={
        "activeDeadlineSeconds": st.integers(1, 86400),
        "lockTimeoutSeconds": st.integers(0, 3600),
        "env": st.lists(st.sampled_from("ABC"), unique=True).map(lambda ns: [{"name": n, "value": n} for n in ns]),
        "imagePullSecrets": st.lists(st.sampled_from("xyz"), unique=True).map(lambda ns: [{"name": n} for n in ns]),
    },
)


@given(own=policies, defaults=policies, clusters=policies)
def test_each_number_is_the_first_that_is_set(own: Document, defaults: Document, clusters: Document) -> None:
    policy = merge(layers(Kind.MACHINE, own, ClusterPolicies("prod", own=clusters, defaults=defaults)))
    said = [each["activeDeadlineSeconds"] for each in (own, defaults, clusters) if "activeDeadlineSeconds" in each]
    assert policy.deadline.value == [*said, 3600][0]


@given(own=policies, defaults=policies, clusters=policies, operation=st.sampled_from(CHECKED))
def test_a_job_starts_exactly_when_the_lock_wait_ends_before_the_deadline(
    own: Document, defaults: Document, clusters: Document, operation: Operation
) -> None:
    policy = merge(layers(Kind.MACHINE, own, ClusterPolicies("prod", own=clusters, defaults=defaults)))
    said = refusal(policy, operation)
    assert (said is None) == (policy.lock_timeout.value < policy.deadline.value)
    assert said is None or (str(policy.lock_timeout) in said and str(policy.deadline) in said)


@given(policy=policies)
def test_a_policy_that_admission_takes_starts_the_jobs_of_a_cluster(policy: Document) -> None:
    taken = problems(policy, path="spec.jobs") == ()
    assert taken == (refusal(of(Kind.CLUSTER, policy), Operation.APPLY) is None)
