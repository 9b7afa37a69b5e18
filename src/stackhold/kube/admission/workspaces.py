"""What is checked in the spec of a cluster, a machine or a pool, by itself or in a template.

A part is checked when it is new or has changed, and not at all on an object that is being deleted: what was stored
before a rule existed must never keep a finalizer on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stackhold.kube.admission.request import mapping, same
from stackhold.kube.contract import MOST_VARIABLES, variable_refusal
from stackhold.kube.images import image_refusal
from stackhold.kube.names import Annotation, Kind, Label
from stackhold.kube.policy import Problem, problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackhold.kube.admission.request import Reads, Request
    from stackhold.model.values import JsonMap

_FIXED_IN_MACHINES = ("source", "identityRef", "variables", "variablesFrom")


def of_object(request: Request, kind: Kind, manager: str) -> Iterator[Problem]:
    """Everything that is wrong with a new or changed object of one of the three kinds."""
    new, old = mapping(request.new, "spec"), mapping(request.old, "spec")
    if not request.is_deleting:
        yield from of_spec(new, old, kind, path="spec")
    if kind is Kind.CLUSTER and not request.is_deleting and not new.get("identityRef") and not same(new, old):
        yield Problem("spec.identityRef", "is required: spec.defaults.identityRef is for machines and pools only")
    if kind is Kind.MACHINE and request.old:
        yield from _of_changed_machine(new, old, is_manager=request.requester.name == manager)


def of_spec(new: JsonMap, old: JsonMap, kind: Kind, *, path: str) -> Iterator[Problem]:
    """What is wrong with those parts of a spec that are new or changed."""
    if not same(new.get("source"), old.get("source")):
        yield from _of_source(mapping(new, "source"), f"{path}.source")
    if not same(new.get("variables"), old.get("variables")):
        yield from _of_variables(new.get("variables"), kind, f"{path}.variables")
    if not same(new.get("variablesFrom"), old.get("variablesFrom")):
        yield from _of_sources(new, f"{path}.variablesFrom")
    policies = ("jobs",), ("defaults", "jobs")
    for place in policies if kind is Kind.CLUSTER else policies[:1]:
        policy = mapping(new, *place)
        if not same(policy, mapping(old, *place)):
            yield from problems(policy, path=".".join((path, *place)))


def of_deletion(request: Request, kind: Kind, reads: Reads) -> Iterator[Problem]:
    """Why an object may not be deleted: a machine whose Machine stays would leave it without infrastructure.

    What `clusterctl move` deletes is let go while its cluster is paused; its mark alone is not enough.
    """
    if kind is not Kind.MACHINE:
        return
    machine = reads.machine_of(namespace=request.namespace, name=request.name)
    if machine is None:
        return
    metadata = mapping(request.old, "metadata")
    cluster = str(mapping(metadata, "labels").get(Label.CLUSTER_NAME, ""))
    is_moved = Annotation.DELETE_FOR_MOVE in mapping(metadata, "annotations")
    if is_moved and cluster and reads.is_paused(namespace=request.namespace, cluster=cluster):
        return
    yield Problem("metadata", f"Machine {machine} still refers to it: delete that Machine instead")


def _of_changed_machine(new: JsonMap, old: JsonMap, *, is_manager: bool) -> Iterator[Problem]:
    """What defines a machine is for good; its provider id is for the manager to set, once."""
    for field in _FIXED_IN_MACHINES:
        if not same(new.get(field), old.get(field)):
            yield Problem(f"spec.{field}", "cannot be changed: make a new machine instead")
    before, now = old.get("providerID"), new.get("providerID")
    if before and now != before:
        yield Problem("spec.providerID", "cannot be changed once it is set")
    elif now != before and not is_manager:
        yield Problem("spec.providerID", "is for the manager to set")


def _of_source(source: JsonMap, path: str) -> Iterator[Problem]:
    image = source.get("image")
    if not isinstance(image, str) or not image:
        yield Problem(f"{path}.image", "is required")
    elif said := image_refusal(image):
        yield Problem(f"{path}.image", f"{image!r} is no image reference: {said}")


def _of_variables(variables: object, kind: Kind, path: str) -> Iterator[Problem]:
    """Names only: a value is never told."""
    if variables is None:
        return
    if not isinstance(variables, dict):
        yield Problem(path, "must be a JSON object")
        return
    if len(variables) > MOST_VARIABLES:
        yield Problem(path, f"has {len(variables)} keys, at most {MOST_VARIABLES} are allowed")
    for name in variables:
        if said := variable_refusal(name, kind):
            yield Problem(f"{path}[{name}]", said)


def _of_sources(spec: JsonMap, path: str) -> Iterator[Problem]:
    for position, source in enumerate(cast("Sequence[JsonMap]", spec.get("variablesFrom") or ())):
        if bool(source.get("configMapRef")) == bool(source.get("secretRef")):
            yield Problem(f"{path}[{position}]", "set exactly one of configMapRef and secretRef")
