"""What is checked in a template: its spec as that of what is made from it, and that it never changes.

Cluster API changes a template's spec in dry runs of a class of clusters, to learn what a patch would give; those, and
nothing else, are let through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stackhold.kube.admission.request import mapping, same
from stackhold.kube.admission.workspaces import of_spec
from stackhold.kube.labels import annotation_problems, label_problems
from stackhold.kube.names import Annotation, Kind
from stackhold.kube.policy import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.kube.admission.request import Request
    from stackhold.model.values import JsonMap

_PATH = "spec.template.spec"


def of_template(request: Request, kind: Kind) -> Iterator[Problem]:
    """Everything that is wrong with a new or changed template of objects of a kind."""
    if request.is_deleting:
        return
    new, old = (mapping(each, "spec", "template", "spec") for each in (request.new, request.old))
    yield from of_spec(new, old, kind, path=_PATH)
    if kind is Kind.MACHINE and new.get("providerID"):
        yield Problem(f"{_PATH}.providerID", "must not be set: every machine made from it would claim to be the same")
    if request.old and not same(new, old) and not _is_topology_dry_run(request):
        yield Problem(_PATH, f"cannot be changed: create a new {request.kind} instead")
    yield from _of_metadata(request)


def warnings_of_template(request: Request, kind: Kind) -> tuple[str, ...]:
    """What a template may lack as long as somebody adds it later."""
    spec = mapping(request.new, "spec", "template", "spec")
    if kind is not Kind.CLUSTER or spec.get("identityRef") or not request.new:
        return ()
    return (f"{_PATH} sets no identityRef: a {kind.value} made from this template is rejected unless a patch sets one",)


def _is_topology_dry_run(request: Request) -> bool:
    annotations = mapping(request.new, "metadata", "annotations")
    return request.is_dry_run and Annotation.TOPOLOGY_DRY_RUN in annotations


def _of_metadata(request: Request) -> Iterator[Problem]:
    path = "spec.template.metadata"
    new, old = (mapping(each, "spec", "template", "metadata") for each in (request.new, request.old))
    if same(new, old):
        return
    for key, said in label_problems(_texts(new, "labels")):
        yield Problem(f"{path}.labels[{key}]", said)
    for key, said in annotation_problems(_texts(new, "annotations")):
        yield Problem(f"{path}.annotations" + (f"[{key}]" if key else ""), said)


def _texts(metadata: JsonMap, field: str) -> Mapping[str, str]:
    return cast("Mapping[str, str]", mapping(metadata, field))
