"""The definitions by themselves: structural, without defaults, bounded, with rules where they can be forgiven."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.errors import Bug
from stackhold.kube.api import definition, definitions
from stackhold.kube.api.cluster import TerraformCluster
from stackhold.kube.api.definitions import SERVED, Served
from stackhold.kube.api.jobs import JobPolicy
from stackhold.kube.api.machine import TerraformMachine
from stackhold.kube.api.plan import TerraformPlan
from stackhold.kube.api.schema import root_schema
from stackhold.kube.api.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]
ANY = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"
kinds = pytest.mark.parametrize("served", SERVED, ids=lambda served: served.kind)


def schema_of(served: Served) -> Schema:
    schema: Schema = definition(served)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every part of a schema with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from parts(schema["additionalProperties"], f"{path}{{}}")


@kinds
def test_there_are_no_defaults(served: Served) -> None:
    assert [path for path, part in parts(schema_of(served)) if "default" in part] == []


@kinds
def test_every_part_has_one_type_or_is_any_json_on_purpose(served: Served) -> None:
    loose = {path for path, part in parts(schema_of(served)) if "type" not in part and "anyOf" not in part}
    assert loose <= {".status.exports"}
    kept = {path for path, part in parts(schema_of(served)) if ANY in part}
    assert kept <= {".status.exports", ".spec.variables", ".spec.template.spec.variables"}


@kinds
def test_every_list_text_and_map_in_a_spec_is_bounded(served: Served) -> None:
    spec = schema_of(served)["properties"]["spec"]
    bounds = {"array": "maxItems", "string": "maxLength"}
    for path, part in parts(spec):
        bound = bounds.get(part.get("type", ""))
        if "additionalProperties" in part:
            bound = "maxProperties"
        assert not bound or bound in part or "enum" in part or "anyOf" in part or "{}" in path, path


@kinds
def test_a_rule_that_compares_with_the_stored_object_stands_at_the_root(served: Served) -> None:
    for path, part in parts(schema_of(served)):
        for rule in part.get(RULES, []):
            assert ("oldSelf" in rule["rule"]) == (path == ""), (path, rule)


@kinds
def test_policy_rules_stand_at_the_policy_itself(served: Served) -> None:
    places = [path for path, part in parts(schema_of(served)) if path.endswith("obs") and RULES in part]
    expected = [path for path, _ in parts(schema_of(served)) if path.endswith(".jobs")]
    assert places == expected


@kinds
def test_no_rule_says_what_the_api_server_takes_for_unboundedly_long(served: Served) -> None:
    said = [rule for _, part in parts(schema_of(served)) for rule in part.get(RULES, [])]
    assert [rule for rule in said if re.search(r"\bstring\(", rule.get("messageExpression", ""))] == []


@kinds
def test_every_rule_names_a_field_that_is_there(served: Served) -> None:
    for path, part in parts(schema_of(served)):
        known = {each for each, _ in parts(part)}
        for rule in part.get(RULES, []):
            assert rule.get("fieldPath", "") in known | {""}, (path, rule)


@kinds
def test_keys_of_lists_are_required(served: Served) -> None:
    for path, part in parts(schema_of(served)):
        for key in part.get("x-kubernetes-list-map-keys", []):
            assert key in part["items"]["required"], path


def test_the_names_are_those_of_the_api() -> None:
    names = {
        each["spec"]["names"]["kind"]: (
            each["metadata"]["name"],
            each["spec"]["scope"],
            each["spec"]["names"]["shortNames"],
            "subresources" in each["spec"]["versions"][0],
        )
        for each in definitions()
    }
    group = "infrastructure.cluster.x-k8s.io"
    assert names == {
        "TerraformCluster": (f"terraformclusters.{group}", "Namespaced", ["tfc"], True),
        "TerraformClusterTemplate": (f"terraformclustertemplates.{group}", "Namespaced", ["tfct"], False),
        "TerraformMachine": (f"terraformmachines.{group}", "Namespaced", ["tfm"], True),
        "TerraformMachineTemplate": (f"terraformmachinetemplates.{group}", "Namespaced", ["tfmt"], True),
        "TerraformMachinePool": (f"terraformmachinepools.{group}", "Namespaced", ["tfmp"], True),
        "TerraformMachinePoolTemplate": (f"terraformmachinepooltemplates.{group}", "Namespaced", ["tfmpt"], False),
        "TerraformClusterIdentity": (f"terraformclusteridentities.{group}", "Cluster", ["tfci"], True),
        "TerraformPlan": (f"terraformplans.{group}", "Namespaced", ["tfplan"], True),
    }
    assert all(each["spec"]["names"]["categories"] == ["cluster-api"] for each in definitions())


@pytest.mark.parametrize(
    ("field", "lowest", "highest"),
    [
        ("activeDeadlineSeconds", 1, 86400),
        ("lockTimeoutSeconds", 0, 3600),
        ("successfulJobsHistoryLimit", 0, 100),
        ("failedJobsHistoryLimit", 0, 100),
    ],
)
@kinds
def test_the_ranges_of_a_policy_are_the_same_wherever_it_stands(
    served: Served, field: str, lowest: int, highest: int
) -> None:
    for path, part in parts(schema_of(served)):
        if path.endswith(f".jobs.{field}"):
            assert (part["minimum"], part["maximum"]) == (lowest, highest)


def test_a_type_reads_the_document_that_its_definition_takes() -> None:
    document = {
        "spec": {
            "providerID": "aws:///a/i-1",
            "source": {"image": "ghcr.io/x/y:1"},
            "jobs": {"activeDeadlineSeconds": 900, "env": [{"name": "A", "value": "b"}]},
            "variables": {"tags": {"a": ["b", 1, None]}},
            "variablesFrom": [{"secretRef": {"name": "s"}}],
        },
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "unhealthySamples": 2},
    }
    machine = msgspec.convert(document, TerraformMachine)
    assert machine.spec.provider_id == "aws:///a/i-1"
    assert machine.spec.jobs is not None
    assert machine.spec.jobs.active_deadline_seconds == 900
    assert msgspec.json.decode(msgspec.json.encode(machine)) == document


@pytest.mark.parametrize(
    ("shape", "document", "where"),
    [
        (JobPolicy, {"activeDeadlineSeconds": 0}, "activeDeadlineSeconds"),
        (JobPolicy, {"lockTimeoutSeconds": 3601}, "lockTimeoutSeconds"),
        (JobPolicy, {"imagePullSecrets": []}, "imagePullSecrets"),
        (TerraformCluster, {"spec": {"source": {"image": ""}}}, "image"),
        (TerraformPlan, {"spec": {"targetRef": {"kind": "TerraformMachine", "name": "x"}}}, "kind"),
    ],
)
def test_a_type_refuses_what_its_definition_refuses(shape: type[Shape], document: Schema, where: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=where):
        msgspec.convert(document, shape)


@pytest.mark.slow
@given(deadline=st.integers(-5, 90000), lock_timeout=st.integers(-5, 4000))
def test_type_and_schema_agree_on_ranges(deadline: int, lock_timeout: int) -> None:
    document = {"activeDeadlineSeconds": deadline, "lockTimeoutSeconds": lock_timeout}
    schema = dict(parts(schema_of(SERVED[0])))[".spec.jobs"]["properties"]
    allowed = all(schema[key]["minimum"] <= value <= schema[key]["maximum"] for key, value in document.items())
    try:
        msgspec.convert(document, JobPolicy)
    except msgspec.ValidationError:
        assert not allowed
    else:
        assert allowed


def test_a_type_that_a_schema_cannot_say_is_a_bug() -> None:
    class _Odd(Shape, frozen=True, kw_only=True):
        """Odd."""

        odd: float

    with pytest.raises(Bug):
        root_schema(_Odd)
