"""The API server takes our definitions and holds objects to them: every row of the table of settings, and the traps."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.definitions import install, path_of, thing
from tests.cluster.waiting import wait_for

from stackhold.kube.api import definitions
from stackhold.testing.kube_node import ApiError

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane

    from stackhold.testing.kube_node import Api

pytestmark = pytest.mark.cluster

Document = dict[str, Any]
LEAST: Document = {"source": {"image": "ghcr.io/example/module:v1"}}
WITH_IDENTITY: Document = {**LEAST, "identityRef": {"name": "aws"}}
PLAN: Document = {
    "targetRef": {"kind": "TerraformCluster", "name": "x"},
    "planHash": "p2:1",
    "inputsHash": "h2:1",
    "reason": "Manual",
    "summary": {"create": 1, "import": 2, "resources": ["a (create)"]},
}


@pytest.fixture(scope="module", autouse=True)
def installed(api: Api) -> None:
    install(api)


def refusal(api: Api, namespace: str, new: Document, old: Document | None = None) -> str | None:
    """What the API server says to an object, or to its change from another; None when it takes it."""
    path = path_of(new["kind"], namespace)
    try:
        if old is None:
            api.create(f"{path}?dryRun=All", new)
            return None
        stored = api.create(path, {**old, "metadata": {**old["metadata"]}})
    except ApiError as error:
        return str(error)
    there = f"{path}/{new['metadata']['name']}"
    try:
        api.replace(there, {**new, "metadata": {**stored["metadata"], **new["metadata"]}})
    except ApiError as error:
        return str(error)
    else:
        return None
    finally:
        api.delete(there)


def objects_with(policy: Document) -> list[Document]:
    """A policy wherever it can stand."""
    return [
        thing("TerraformCluster", "c", {**WITH_IDENTITY, "jobs": policy}),
        thing("TerraformCluster", "d", {**WITH_IDENTITY, "defaults": {"jobs": policy}}),
        thing("TerraformMachine", "m", {**LEAST, "jobs": policy}),
        thing("TerraformMachinePool", "mp", {**LEAST, "jobs": policy}),
        *(
            thing(kind, "t", {"template": {"spec": {**LEAST, "jobs": policy}}})
            for kind in ("TerraformClusterTemplate", "TerraformMachineTemplate", "TerraformMachinePoolTemplate")
        ),
    ]


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"activeDeadlineSeconds": 1, "lockTimeoutSeconds": 0},
        {"activeDeadlineSeconds": 301},
        {"lockTimeoutSeconds": 3599},
        {"activeDeadlineSeconds": 86400, "lockTimeoutSeconds": 3600},
        {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 100},
        {"securityContext": {"privileged": False, "runAsUser": 5, "capabilities": {"drop": ["ALL"]}}},
        {"podSecurityContext": {"fsGroup": 7, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}},
        {"resources": {"requests": {"cpu": "250m", "memory": 512}}, "imagePullSecrets": [{"name": "a"}]},
        {"env": [{"name": "TF_LOG", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]},
    ],
)
def test_a_policy_that_holds_is_taken_wherever_it_stands(api: Api, namespace: str, policy: Document) -> None:
    assert [said for each in objects_with(policy) if (said := refusal(api, namespace, each))] == []


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"activeDeadlineSeconds": 0, "lockTimeoutSeconds": 0}, "greater than or equal to 1"),
        ({"activeDeadlineSeconds": 86401}, "less than or equal to 86400"),
        ({"lockTimeoutSeconds": -1}, "greater than or equal to 0"),
        ({"activeDeadlineSeconds": 86400, "lockTimeoutSeconds": 3601}, "less than or equal to 3600"),
        ({"successfulJobsHistoryLimit": 101}, "less than or equal to 100"),
        ({"failedJobsHistoryLimit": -1}, "greater than or equal to 0"),
        (
            {"activeDeadlineSeconds": 300},
            "lockTimeoutSeconds (built-in default 300) must be less than activeDeadlineSeconds (configured 300)",
        ),
        (
            {"lockTimeoutSeconds": 3600},
            "lockTimeoutSeconds (configured 3600) must be less than activeDeadlineSeconds (built-in default 3600)",
        ),
        (
            {"activeDeadlineSeconds": 12345, "lockTimeoutSeconds": 3600, "securityContext": {"runAsUser": 0}},
            "runAsUser must not allow root",
        ),
        (
            {"activeDeadlineSeconds": 9, "lockTimeoutSeconds": 10},
            "lockTimeoutSeconds (configured 10) must be less than activeDeadlineSeconds (configured 9)",
        ),
        ({"securityContext": {"privileged": True}}, "privileged must not be true"),
        ({"securityContext": {"capabilities": {"add": ["X"]}}}, "capabilities.add must be empty"),
        ({"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}}, "must not be Unconfined"),
        ({"podSecurityContext": {"sysctls": [{"name": "kernel.x", "value": "1"}]}}, "Pod Security Standards"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "Duplicate value"),
    ],
)
def test_a_policy_that_does_not_hold_is_refused_wherever_it_stands(
    api: Api, namespace: str, policy: Document, message: str
) -> None:
    for each in objects_with(policy):
        assert message in (refusal(api, namespace, each) or "it was taken"), each


def test_what_was_stored_before_a_rule_existed_lets_its_finalizer_go(api: Api, namespace: str) -> None:
    strict = next(each for each in definitions() if each["spec"]["names"]["kind"] == "TerraformMachine")
    loose: Document = copy.deepcopy(strict)
    spec = loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["jobs"]["x-kubernetes-validations"]
    where = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{strict['metadata']['name']}"
    old = thing("TerraformMachine", "old", {**LEAST, "jobs": {"activeDeadlineSeconds": 10}}, finalizers=["a.io/b"])
    api.merge(where, {"spec": loose["spec"]})
    try:
        wait_for(lambda: refusal(api, namespace, old) is None, "the definition without the rule")
        api.create(path_of("TerraformMachine", namespace), old)
    finally:
        api.merge(where, {"spec": strict["spec"]})
    another = {**old, "metadata": {"name": "new"}}
    wait_for(lambda: refusal(api, namespace, another) is not None, "the definition with the rule")
    there = path_of("TerraformMachine", namespace, "old")
    api.merge(there, {"spec": {"drift": {"intervalSeconds": 60}}})
    with pytest.raises(ApiError, match="must be less than activeDeadlineSeconds"):
        api.merge(there, {"spec": {"jobs": {"env": [{"name": "A"}]}}})
    api.delete(there)
    api.merge(there, {"metadata": {"finalizers": []}})
    with pytest.raises(ApiError, match="404"):
        api.get(there)


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("source", {"image": "a:1"}, {"image": "b:1"}),
        ("identityRef", None, {"name": "x"}),
        ("identityRef", {"name": "x"}, None),
        ("variables", {"a": {"b": [1]}}, {"a": {"b": [2]}}),
        ("variables", None, {"a": 1}),
        ("variablesFrom", [{"secretRef": {"name": "a"}}], [{"secretRef": {"name": "b"}}]),
        ("providerID", "a", "b"),
        ("providerID", "a", None),
    ],
)
def test_what_defines_a_machine_cannot_be_changed(
    api: Api, namespace: str, field: str, before: object, after: object
) -> None:
    old, new = (
        thing("TerraformMachine", "m", {**LEAST, **({field: each} if each else {})}) for each in (before, after)
    )
    assert f"spec.{field}" in (refusal(api, namespace, new, old) or "it was taken")
    assert refusal(api, namespace, old, old) is None


@pytest.mark.parametrize(
    ("kind", "spec", "allowed"),
    [
        ("TerraformCluster", LEAST, False),
        ("TerraformClusterTemplate", {"template": {"spec": LEAST}}, True),
        ("TerraformMachine", {}, False),
        ("TerraformMachine", {**LEAST, "variablesFrom": [{}]}, False),
        ("TerraformMachine", {**LEAST, "variables": {"a": [1, {"b": None}]}, "drift": {"intervalSeconds": 0}}, True),
        ("TerraformMachinePool", {**LEAST, "drift": {"intervalSeconds": 0}}, False),
        ("TerraformMachineTemplate", {"template": {"spec": {**LEAST, "providerID": "x"}}}, False),
        ("TerraformMachineTemplate", {"capacity": {"cpu": "4", "memory": 16}, "template": {"spec": LEAST}}, True),
        ("TerraformCluster", {**WITH_IDENTITY, "controlPlaneEndpoint": {"host": "h"}}, False),
        ("TerraformClusterIdentity", {}, False),
        ("TerraformClusterIdentity", {"secretRef": {"name": "a", "namespace": "b"}}, True),
        ("TerraformClusterIdentity", {"secretRef": {"name": "a", "namespace": "b"}, "allowedNamespaces": {}}, False),
        (
            "TerraformClusterIdentity",
            {"secretRef": {"name": "a", "namespace": "b"}, "allowedNamespaces": {"selector": {}}},
            True,
        ),
        (
            "TerraformClusterIdentity",
            {"secretRef": {"name": "a", "namespace": "b"}, "allowedNamespaces": {"list": ["a", "a"]}},
            False,
        ),
        ("TerraformPlan", PLAN, True),
        ("TerraformPlan", {**PLAN, "approved": True}, False),
    ],
)
def test_an_object_is_held_to_what_it_says_itself(
    api: Api, namespace: str, kind: str, spec: Document, allowed: bool
) -> None:
    said = refusal(api, namespace, thing(kind, "x", spec))
    assert (said is None) is allowed, said


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ({}, {"approved": True, "approvedBy": "m"}, True),
        ({}, {"approvedBy": "m"}, False),
        ({"approved": True, "approvedBy": "m"}, {}, False),
        ({"approved": True, "approvedBy": "m"}, {"approved": True, "approvedBy": "o"}, False),
        ({}, {"planHash": "p2:2"}, False),
        ({}, {"summary": {"create": 2}}, False),
    ],
)
def test_a_plan_is_approved_once_and_never_changed(
    api: Api, namespace: str, before: Document, after: Document, allowed: bool
) -> None:
    old, new = (thing("TerraformPlan", "p", {**PLAN, **each}) for each in (before, after))
    said = refusal(api, namespace, new, old)
    assert (said is None) is allowed, said


def test_a_complete_endpoint_is_there_for_good(api: Api, namespace: str) -> None:
    without = thing("TerraformCluster", "c", WITH_IDENTITY)
    one, two = (
        thing("TerraformCluster", "c", {**WITH_IDENTITY, "controlPlaneEndpoint": {"host": host, "port": 6443}})
        for host in ("a", "b")
    )
    assert refusal(api, namespace, one, without) is None
    assert "cannot be changed" in (refusal(api, namespace, two, one) or "")
    assert "cannot be changed" in (refusal(api, namespace, without, one) or "")


def test_objects_are_found_by_short_names_and_show_their_columns(
    api: Api, namespace: str, control_plane: ControlPlane
) -> None:
    labels = {"cluster.x-k8s.io/cluster-name": "prod"}
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "md-0", "uid": "u"}
    api.create(
        path_of("TerraformMachine", namespace),
        thing("TerraformMachine", "m", {**LEAST, "providerID": "x:///1"}, labels=labels, ownerReferences=[owner]),
    )
    status = {"status": {"initialization": {"provisioned": True}}}
    api.merge(path_of("TerraformMachine", namespace, "m") + "/status", status)
    shown = control_plane.kubectl("get", "tfm", "-n", namespace, "-o", "wide")
    assert set(shown.splitlines()[0].split()) == {
        *("NAME", "CLUSTER", "MACHINE", "READY", "PROVISIONED", "PROVIDERID", "IMAGE", "INPUTSAPPLIED", "AGE")
    }
    for value in ("prod", "md-0", "true", "x:///1", LEAST["source"]["image"]):
        assert value in shown
