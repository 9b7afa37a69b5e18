"""Environment, arguments and the downward API, and who a container is."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from stackhold.testing.kube_node.fields import (
    Lookups,
    NotThere,
    Unsupported,
    arguments,
    environment,
    expand,
    field,
    host_name,
)
from stackhold.testing.kube_node.images import Image
from stackhold.testing.kube_node.plans import ConfigError, grace_seconds, identity, refuse_unsupported

POD: dict[str, Any] = {
    "metadata": {"name": "a-pod", "namespace": "ns", "uid": "u-1", "labels": {"a.b/c": "d"}},
    "spec": {"nodeName": "n", "restartPolicy": "Never", "serviceAccountName": "sa", "containers": [{"name": "c"}]},
}


def _secret(name: str) -> dict[str, Any]:
    if name != "s":
        raise NotThere(name)
    return {"data": {"key": base64.b64encode(b"hidden").decode()}}


def _config_map(name: str) -> dict[str, Any]:
    if name != "m":
        raise NotThere(name)
    return {"data": {"key": "shown"}}


LOOKUPS = Lookups(secret=_secret, config_map=_config_map)


def env(*entries: dict[str, Any], **container: Any) -> dict[str, str]:
    return environment(POD, {"env": list(entries), **container}, {"IMAGE": "i"}, LOOKUPS)


def test_values_come_from_text_secrets_config_maps_and_fields() -> None:
    assert env(
        {"name": "A", "value": "a"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "key"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a.b/c']"}}},
        {"name": "E"},
        {"name": "F", "value": "$(A)-$(IMAGE)-$(NONE)-$$(A)"},
    ) == {"IMAGE": "i", "A": "a", "B": "hidden", "C": "shown", "D": "d", "E": "", "F": "a-i-$(NONE)-$(A)"}


def test_what_is_missing_is_waited_for_unless_it_is_optional() -> None:
    for reference in ({"name": "s", "key": "other"}, {"name": "none", "key": "key"}):
        with pytest.raises(NotThere):
            env({"name": "A", "valueFrom": {"secretKeyRef": reference}})
        assert "A" not in env({"name": "A", "valueFrom": {"secretKeyRef": {**reference, "optional": True}}})
    with pytest.raises(NotThere):
        env(envFrom=[{"secretRef": {"name": "none"}}])


def test_all_entries_of_a_secret_can_be_had_and_single_ones_win() -> None:
    sources = [{"secretRef": {"name": "s"}, "prefix": "P_"}, {"configMapRef": {"name": "m"}}]
    assert env({"name": "key", "value": "own"}, envFrom=sources) == {"IMAGE": "i", "P_key": "hidden", "key": "own"}


def test_an_unknown_source_or_field_is_refused() -> None:
    with pytest.raises(Unsupported):
        env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}})
    with pytest.raises(Unsupported):
        field(POD, "metadata.generation")


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({}, ["entry", "cmd"]),
        ({"args": ["x"]}, ["entry", "x"]),
        ({"command": ["own"]}, ["own"]),
        ({"command": ["own"], "args": ["$(A)"]}, ["own", "a"]),
    ],
)
def test_a_pods_command_replaces_the_entrypoint_and_its_args_the_command(
    container: dict[str, Any], expected: list[str]
) -> None:
    assert arguments(container, entrypoint=("entry",), command=("cmd",), env={"A": "a"}) == expected


def test_an_expansion_leaves_what_it_does_not_know() -> None:
    assert expand("$(A)$(B)$$(A)$A", {"A": "1"}) == "1$(B)$(A)$A"


def test_a_host_name_has_at_most_63_letters_and_no_dash_at_its_end() -> None:
    assert host_name(POD) == "a-pod"
    assert host_name({"metadata": {"name": "a" * 62 + "-" + "b"}, "spec": {}}) == "a" * 62


def test_a_container_is_who_it_says_then_who_the_pod_says_then_who_the_image_says() -> None:
    pod = {"spec": {"securityContext": {"runAsUser": 5, "fsGroup": 7, "supplementalGroups": [8]}}}
    own = identity(pod, {"name": "c", "securityContext": {"runAsUser": 6}}, Image(user=4, group=3))
    assert (own.user, own.group, own.groups) == (6, 3, (8, 7))
    assert identity(pod, {"name": "c"}, Image(user=4)).user == 5
    assert identity({"spec": {}}, {"name": "c"}, Image(user=4)).user == 4


def test_root_is_refused_where_root_must_not_be() -> None:
    context = {"securityContext": {"runAsNonRoot": True}}
    with pytest.raises(ConfigError, match="runAsNonRoot"):
        identity({"spec": context}, {"name": "c"}, Image())
    assert identity({"spec": context}, {"name": "c"}, Image(user=1)).user == 1


def test_capabilities_are_dropped_and_added_by_name() -> None:
    def kept(capabilities: dict[str, Any]) -> tuple[int, ...] | None:
        context = {"capabilities": capabilities}
        return identity({"spec": {}}, {"name": "c", "securityContext": context}, Image()).capabilities

    assert kept({"drop": ["ALL"]}) == ()
    assert kept({"drop": ["ALL"], "add": ["KILL"]}) == (5,)
    assert 5 not in (kept({"drop": ["KILL"]}) or ())
    with pytest.raises(Unsupported, match="SYS_ADMIN"):
        kept({"add": ["SYS_ADMIN"]})


def test_grace_is_what_the_deletion_says_and_a_second_at_least() -> None:
    spec = {"terminationGracePeriodSeconds": 600}
    assert grace_seconds({"metadata": {}, "spec": spec}) == 600
    assert grace_seconds({"metadata": {"deletionGracePeriodSeconds": 20}, "spec": spec}) == 20
    assert grace_seconds({"metadata": {"deletionGracePeriodSeconds": 0}, "spec": spec}) == 1


def test_what_would_have_to_be_ignored_is_refused() -> None:
    refuse_unsupported(POD)
    with pytest.raises(Unsupported, match="restartPolicy"):
        refuse_unsupported({"spec": {"restartPolicy": "OnFailure", "containers": []}})
    with pytest.raises(Unsupported, match="livenessProbe of container c"):
        refuse_unsupported(
            {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "livenessProbe": {"a": 1}}]}}
        )
