"""Requests as the API server sends them, and what the webhook answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.errors import InputError
from stackhold.kube.admission import Requester, review
from stackhold.kube.admission.request import same
from stackhold.kube.names import GROUP, Annotation, Kind, Label

if TYPE_CHECKING:
    from stackhold.kube.admission import Reads

Document = dict[str, Any]
MANAGER = "system:serviceaccount:captf-system:captf-manager"
IMAGE = "ghcr.io/example/module:v1"
TEMPLATES = [f"{kind.value}Template" for kind in Kind]


@dataclass
class Cluster:
    """What can be looked up."""

    readable: set[tuple[str, str, str]] = field(default_factory=set)
    machines: dict[tuple[str, str], str] = field(default_factory=dict)
    paused: set[tuple[str, str]] = field(default_factory=set)
    users: dict[str, str] = field(default_factory=dict)
    is_away: bool = False

    def may_get_secret(self, requester: Requester, *, namespace: str, name: str) -> bool:
        self._answer()
        return (requester.name, namespace, name) in self.readable

    def machine_of(self, *, namespace: str, name: str) -> str | None:
        self._answer()
        return self.machines.get((namespace, name))

    def is_paused(self, *, namespace: str, cluster: str) -> bool:
        self._answer()
        return (namespace, cluster) in self.paused

    def user_of_identity(self, name: str) -> str | None:
        self._answer()
        return self.users.get(name)

    def _answer(self) -> None:
        if self.is_away:
            raise ConnectionError("nobody answers")


if TYPE_CHECKING:
    _: type[Reads] = Cluster


@dataclass(frozen=True)
class Answer:
    """What came back."""

    allowed: bool
    message: str
    fields: list[str]
    warnings: list[str]


def thing(kind: str, spec: Document, **metadata: Any) -> Document:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"name": "demo", "namespace": "team-a", **metadata},
        "spec": spec,
    }


def ask(
    new: Document | None = None,
    old: Document | None = None,
    *,
    user: str = "maria",
    cluster: Cluster | None = None,
    dry_run: bool = False,
) -> Answer:
    """Create, change or delete a thing."""
    shown = new or old or {}
    operation = "UPDATE" if new and old else "CREATE" if new else "DELETE"
    document = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": GROUP, "version": "v1alpha1", "kind": shown["kind"]},
            "operation": operation,
            "namespace": "team-a",
            "name": "demo",
            "userInfo": {"username": user, "groups": ["system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": dry_run,
        },
    }
    answer: Any = review(document, manager=MANAGER, reads=cluster or Cluster())
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answer["response"]
    assert response["uid"] == "u-1"
    status = response.get("status", {})
    return Answer(
        allowed=response["allowed"],
        message=status.get("message", ""),
        fields=[cause["field"] for cause in status.get("details", {}).get("causes", [])],
        warnings=response.get("warnings", []),
    )


def spec_of(kind: Kind | str, **more: Any) -> Document:
    """The smallest spec of an object, or the spec in a template."""
    least: Document = {"source": {"image": IMAGE}, **more}
    if str(kind).startswith("TerraformCluster"):
        least.setdefault("identityRef", {"name": "aws"})
    return {"template": {"spec": least}} if str(kind).endswith("Template") else least


@pytest.mark.parametrize("kind", [*(kind.value for kind in Kind), *TEMPLATES])
def test_the_smallest_object_of_a_kind_is_taken(kind: str) -> None:
    assert ask(thing(kind, spec_of(kind))).allowed


@pytest.mark.parametrize("kind", [*(kind.value for kind in Kind), *TEMPLATES])
def test_a_policy_is_refused_with_both_values_and_where_it_stands(kind: str) -> None:
    answer = ask(thing(kind, spec_of(kind, jobs={"activeDeadlineSeconds": 300})))
    path = "spec.template.spec.jobs" if kind.endswith("Template") else "spec.jobs"
    assert answer.message == (
        f'{kind} "demo" is invalid: {path}.activeDeadlineSeconds: lockTimeoutSeconds (built-in default 300)'
        f" must be less than activeDeadlineSeconds (configured 300 in {path});"
        " lower lockTimeoutSeconds or raise activeDeadlineSeconds"
    )


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ({}, True),
        ({"activeDeadlineSeconds": 1, "lockTimeoutSeconds": 0}, True),
        ({"activeDeadlineSeconds": 301}, True),
        ({"activeDeadlineSeconds": 300}, False),
        ({"lockTimeoutSeconds": 3599}, True),
        ({"lockTimeoutSeconds": 3600}, False),
        ({"activeDeadlineSeconds": 86400, "lockTimeoutSeconds": 3600}, True),
        ({"activeDeadlineSeconds": 600, "lockTimeoutSeconds": 600}, False),
        ({"securityContext": {"privileged": True}}, False),
        ({"podSecurityContext": {"runAsUser": 0}}, False),
    ],
)
@pytest.mark.parametrize("place", ["jobs", "defaults"])
def test_a_cluster_may_have_a_policy_and_defaults_that_hold_by_themselves(
    policy: Document, allowed: bool, place: str
) -> None:
    more = {"jobs": policy} if place == "jobs" else {"defaults": {"jobs": policy}}
    assert ask(thing("TerraformCluster", spec_of(Kind.CLUSTER, **more))).allowed is allowed


def test_defaults_are_not_held_against_the_clusters_own_policy() -> None:
    more = {"jobs": {"lockTimeoutSeconds": 1000}, "defaults": {"jobs": {"activeDeadlineSeconds": 900}}}
    assert ask(thing("TerraformCluster", spec_of(Kind.CLUSTER, **more))).allowed


BROKEN = {"jobs": {"activeDeadlineSeconds": 10}, "source": {"image": "NOT AN IMAGE"}, "variables": {"count": 1}}


@pytest.mark.parametrize("kind", list(Kind))
def test_an_object_that_was_stored_before_a_rule_can_be_changed_elsewhere(kind: Kind) -> None:
    old = thing(kind, spec_of(kind, **BROKEN))
    new = thing(kind, spec_of(kind, **BROKEN, drift={"intervalSeconds": 60}), labels={"a": "b"})
    assert ask(new, old).allowed
    assert not ask(new).allowed


@pytest.mark.parametrize("kind", list(Kind))
def test_nothing_in_a_policy_keeps_the_finalizer_of_an_object_that_is_deleted(kind: Kind) -> None:
    deleting = {"deletionTimestamp": "2026-12-01T00:00:00Z"}
    old = thing(kind, spec_of(kind), **deleting, finalizers=[kind.finalizer])
    broken = BROKEN if kind is not Kind.MACHINE else {"jobs": BROKEN["jobs"]}
    assert ask(thing(kind, spec_of(kind, **broken), **deleting), old).allowed


def test_a_changed_policy_is_checked_as_a_whole() -> None:
    old = thing("TerraformMachine", spec_of(Kind.MACHINE, jobs={"activeDeadlineSeconds": 10}))
    new = thing("TerraformMachine", spec_of(Kind.MACHINE, jobs={"activeDeadlineSeconds": 10, "env": [{"name": "A"}]}))
    assert not ask(new, old).allowed


def test_everything_that_is_wrong_is_told_at_once() -> None:
    answer = ask(thing("TerraformCluster", {**BROKEN, "defaults": {"jobs": {"lockTimeoutSeconds": 3600}}}))
    assert answer.fields == [
        "spec.source.image",
        "spec.variables[count]",
        "spec.jobs.activeDeadlineSeconds",
        "spec.defaults.jobs.lockTimeoutSeconds",
        "spec.identityRef",
    ]


@pytest.mark.parametrize(
    ("name", "cluster", "machine"),
    [
        ("region", True, True),
        ("_x-1", True, True),
        ("1x", False, False),
        ("a b", False, False),
        ("captf_tags", False, False),
        ("for_each", False, False),
        ("machine_name", True, False),
        ("cluster_network", False, True),
        ("kubernetes_version", False, False),
    ],
)
def test_a_variable_has_a_name_that_is_free_in_its_role(name: str, cluster: bool, machine: bool) -> None:
    for kind, allowed in ((Kind.CLUSTER, cluster), (Kind.MACHINE, machine)):
        answer = ask(thing(kind, spec_of(kind, variables={name: "s3cret"})))
        assert answer.allowed is allowed
        assert "s3cret" not in answer.message


def test_variables_are_an_object_of_bounded_size() -> None:
    assert ask(thing("TerraformMachine", spec_of(Kind.MACHINE, variables=["x"]))).fields == ["spec.variables"]
    many = {f"v{n}": n for n in range(257)}
    assert ask(thing("TerraformMachine", spec_of(Kind.MACHINE, variables=many))).fields == ["spec.variables"]


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ({"secretRef": {"name": "s"}}, True),
        ({"configMapRef": {"name": "c"}}, True),
        ({"secretRef": {"name": "s"}, "configMapRef": {"name": "c"}}, False),
        ({"optional": True}, False),
    ],
)
def test_a_source_of_variables_names_one_thing(source: Document, allowed: bool) -> None:
    assert ask(thing("TerraformMachine", spec_of(Kind.MACHINE, variablesFrom=[source]))).allowed is allowed


# Machines.


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("source", {"image": IMAGE}, {"image": "ghcr.io/example/module:v2"}),
        ("identityRef", None, {"name": "aws"}),
        ("identityRef", {"name": "aws"}, None),
        ("variables", {"a": 1}, {"a": True}),
        ("variables", {"a": 1}, {"b": 1}),
        ("variables", {"a": {"b": [1]}}, {"a": {"b": [1, 2]}}),
        ("variablesFrom", [{"secretRef": {"name": "a"}}], [{"secretRef": {"name": "b"}}]),
    ],
)
def test_what_defines_a_machine_cannot_be_changed(field: str, before: object, after: object) -> None:
    old, new = (
        thing(
            "TerraformMachine", {key: value for key, value in {**spec_of(Kind.MACHINE), field: each}.items() if value}
        )
        for each in (before, after)
    )
    assert ask(new, old).fields == [f"spec.{field}"]
    assert ask(old, old).allowed


def test_variables_in_another_order_are_the_same() -> None:
    old = thing("TerraformMachine", spec_of(Kind.MACHINE, variables={"a": 1, "b": {"x": 1, "y": 2}}))
    new = thing("TerraformMachine", spec_of(Kind.MACHINE, variables={"b": {"y": 2, "x": 1}, "a": 1}))
    assert ask(new, old).allowed


@pytest.mark.parametrize(
    ("before", "after", "user", "allowed"),
    [
        (None, "aws:///i-1", MANAGER, True),
        (None, "aws:///i-1", "maria", False),
        ("aws:///i-1", "aws:///i-2", MANAGER, False),
        ("aws:///i-1", None, MANAGER, False),
        ("aws:///i-1", "aws:///i-1", "maria", True),
    ],
)
def test_the_provider_id_is_set_once_and_by_the_manager(
    before: str | None, after: str | None, user: str, allowed: bool
) -> None:
    old, new = (
        thing("TerraformMachine", spec_of(Kind.MACHINE, **({"providerID": each} if each else {})))
        for each in (before, after)
    )
    assert ask(new, old, user=user).allowed is allowed


def test_a_machine_that_is_moved_is_created_with_its_provider_id() -> None:
    assert ask(thing("TerraformMachine", spec_of(Kind.MACHINE, providerID="aws:///i-1"))).allowed


def test_a_machine_goes_after_its_owner() -> None:
    old = thing("TerraformMachine", spec_of(Kind.MACHINE))
    owned = Cluster(machines={("team-a", "demo"): "md-0-x"})
    assert ask(old=old).allowed
    assert ask(old=old, cluster=owned).message == (
        'TerraformMachine "demo" cannot be deleted: Machine md-0-x still refers to it: delete that Machine instead'
    )


@pytest.mark.parametrize(("is_marked", "is_paused"), [(True, True), (True, False), (False, True)])
def test_only_a_move_of_a_paused_cluster_deletes_a_machine_before_its_owner(is_marked: bool, is_paused: bool) -> None:
    annotations = {Annotation.DELETE_FOR_MOVE: ""} if is_marked else {}
    old = thing("TerraformMachine", spec_of(Kind.MACHINE), annotations=annotations, labels={Label.CLUSTER_NAME: "prod"})
    cluster = Cluster(machines={("team-a", "demo"): "m"}, paused={("team-a", "prod")} if is_paused else set())
    assert ask(old=old, cluster=cluster).allowed is (is_marked and is_paused)


@pytest.mark.parametrize("kind", [Kind.CLUSTER.value, Kind.MACHINE_POOL.value, *TEMPLATES, "TerraformPlan"])
def test_what_can_always_be_deleted_needs_nothing_looked_up(kind: str) -> None:
    assert ask(old=thing(kind, {}), cluster=Cluster(is_away=True)).allowed


# Templates.


@pytest.mark.parametrize("kind", TEMPLATES)
def test_the_spec_in_a_template_never_changes(kind: str) -> None:
    old = thing(kind, spec_of(kind))
    new = thing(kind, spec_of(kind, drift={"intervalSeconds": 60}))
    assert ask(new, old).message == (
        f'{kind} "demo" is invalid: spec.template.spec: cannot be changed: create a new {kind} instead'
    )
    labelled = {"template": {**old["spec"]["template"], "metadata": {"labels": {"team": "a"}}}}
    assert ask(thing(kind, labelled), old).allowed


@pytest.mark.parametrize(("dry_run", "marked"), [(True, True), (True, False), (False, True)])
def test_only_a_dry_run_of_a_topology_may_change_a_template(dry_run: bool, marked: bool) -> None:
    kind = TEMPLATES[0]
    annotations = {Annotation.TOPOLOGY_DRY_RUN: ""} if marked else {}
    new = thing(kind, spec_of(kind, drift={"intervalSeconds": 60}), annotations=annotations)
    assert ask(new, thing(kind, spec_of(kind)), dry_run=dry_run).allowed is (dry_run and marked)


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"labels": {"a b": "x"}}, "labels[a b]"),
        ({"labels": {"a": "x y"}}, "labels[a]"),
        ({"labels": {"-.x/a": "x"}}, "labels[-.x/a]"),
        ({"annotations": {"a/b/c": "x"}}, "annotations[a/b/c]"),
        ({"annotations": {"a": "x" * 262145}}, "annotations"),
    ],
)
def test_labels_in_a_template_must_be_labels(metadata: Document, where: str) -> None:
    kind = "TerraformMachineTemplate"
    spec = {"template": {**spec_of(kind)["template"], "metadata": metadata}}
    assert ask(thing(kind, spec)).fields == [f"spec.template.metadata.{where}"]


def test_a_template_of_machines_has_no_provider_id() -> None:
    kind = "TerraformMachineTemplate"
    assert ask(thing(kind, spec_of(kind, providerID="x"))).fields == ["spec.template.spec.providerID"]


def test_a_template_of_clusters_without_an_identity_is_taken_with_a_warning() -> None:
    kind = "TerraformClusterTemplate"
    answer = ask(thing(kind, {"template": {"spec": {"source": {"image": IMAGE}}}}))
    assert answer.allowed
    assert answer.warnings == [
        "spec.template.spec sets no identityRef: a TerraformCluster made from this template is rejected unless a patch"
        " sets one"
    ]
    assert ask(thing(kind, spec_of(kind))).warnings == []


# Plans.


def plan(*, approved: bool = False, by: str | None = None, phase: str | None = None) -> Document:
    spec: Document = {
        "planHash": "p2:1",
        **({"approved": True} if approved else {}),
        **({"approvedBy": by} if by else {}),
    }
    return thing("TerraformPlan", spec, labels={Label.PLAN_PHASE: phase} if phase else {})


@pytest.mark.parametrize(
    ("before", "after", "user", "allowed"),
    [
        (plan(phase="Pending"), plan(approved=True, by="maria", phase="Pending"), "maria", True),
        (plan(phase="Pending"), plan(approved=True, by="otto", phase="Pending"), "maria", False),
        (plan(phase="Pending"), plan(approved=True, phase="Pending"), "maria", False),
        (plan(phase="Superseded"), plan(approved=True, by="maria", phase="Superseded"), "maria", False),
        (plan(phase="Applied"), plan(approved=True, by="maria", phase="Applied"), "maria", False),
        (plan(phase="Failed"), plan(approved=True, by="maria", phase="Failed"), "maria", False),
        (plan(phase="Pending"), plan(phase="Approved"), "maria", False),
        (plan(phase="Pending"), plan(), "maria", False),
        (plan(phase="Pending"), plan(phase="Superseded"), MANAGER, True),
        (
            plan(approved=True, by="otto", phase="Pending"),
            plan(approved=True, by="otto", phase="Approved"),
            MANAGER,
            True,
        ),
        (None, plan(phase="Pending"), "maria", True),
        (None, plan(phase="Pending"), MANAGER, True),
        (None, plan(approved=True, by="maria", phase="Approved"), "maria", True),
        (None, plan(approved=True, by="otto", phase="Approved"), "maria", False),
        (None, plan(approved=True, by="otto", phase="Applied"), "maria", True),
        (None, plan(phase="Approved"), "maria", False),
        (None, plan(approved=True, by="otto", phase="Approved"), MANAGER, True),
    ],
)
def test_a_plan_is_approved_by_the_one_who_asks(
    before: Document | None, after: Document, user: str, allowed: bool
) -> None:
    assert ask(after, before, user=user).allowed is allowed


# Identities.


def identity(secret: str = "aws", **allowed: Any) -> Document:
    spec: Document = {"secretRef": {"name": secret, "namespace": "keys"}}
    return thing("TerraformClusterIdentity", {**spec, **({"allowedNamespaces": allowed} if allowed else {})})


READER = Cluster(readable={("maria", "keys", "aws")})


def test_whoever_makes_an_identity_may_read_its_secret() -> None:
    assert ask(identity(), cluster=READER).allowed
    assert ask(identity(), user="otto", cluster=READER).message == (
        'TerraformClusterIdentity "demo" is invalid: spec.secretRef: user "otto" may not get Secret keys/aws'
    )


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        (identity(list=["a"]), True),
        (identity("other", list=["a"]), False),
        (identity(list=["a", "b"]), False),
        (identity(), False),
    ],
)
def test_whoever_changes_what_is_copied_or_where_to_is_asked_again(after: Document, allowed: bool) -> None:
    after["metadata"]["labels"] = {"a": "b"}
    assert ask(after, identity(list=["a"]), user="otto", cluster=READER).allowed is allowed


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ({}, True),
        ({"matchLabels": {"a.io/b": "c"}}, True),
        ({"matchLabels": {"a": "c d"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Near"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b c"]}]}, False),
    ],
)
def test_a_selector_must_be_readable(selector: Document, allowed: bool) -> None:
    assert ask(identity(selector=selector), cluster=READER).allowed is allowed


def test_an_identity_in_use_stays() -> None:
    used = {**identity(), "status": {"namespaces": ["a", "b"]}}
    answer = ask(old=used, cluster=Cluster(users={"demo": "TerraformCluster team-a/prod"}))
    assert answer.message == (
        'TerraformClusterIdentity "demo" cannot be deleted: TerraformCluster team-a/prod still uses it;'
        " it is still mirrored to a, b"
    )
    assert ask(old=identity()).allowed


# The protocol.


def test_a_kind_of_somebody_else_is_let_through() -> None:
    assert ask(thing("Machine", {})).allowed


@pytest.mark.parametrize("document", [{}, {"apiVersion": "admission.k8s.io/v1beta1", "request": {}}, {"request": 1}])
def test_what_is_no_review_has_no_answer(document: Document) -> None:
    with pytest.raises(InputError):
        review(document, manager=MANAGER, reads=Cluster())


def test_a_look_up_that_nobody_answers_leaves_the_request_to_the_failure_policy() -> None:
    with pytest.raises(ConnectionError):
        ask(identity(), cluster=Cluster(is_away=True))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
)


@given(value=json_values, other=json_values)
def test_equality_is_that_of_json(value: object, other: object) -> None:
    assert same(value, value)
    assert same(value, other) == same(other, value)
    assert not same(value, [value])


@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0), ([True], [1]), ({"a": 0}, {"a": False}), (None, 0)])
def test_what_python_takes_for_equal_is_not(one: object, other: object) -> None:
    assert not same(one, other)


@given(policy=st.dictionaries(st.sampled_from(["activeDeadlineSeconds", "lockTimeoutSeconds"]), st.integers(0, 5000)))
def test_asking_again_about_what_is_stored_always_goes_well(policy: Document) -> None:
    machine = thing("TerraformMachine", spec_of(Kind.MACHINE, jobs=policy))
    assert ask(machine, machine).allowed
