"""A request that the API server asks about, and what may be read to answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks, as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to do to one object."""

    uid: str
    kind: str
    operation: str
    """`CREATE`, `UPDATE` or `DELETE`."""
    namespace: str
    name: str
    requester: Requester
    is_dry_run: bool
    new: JsonMap
    """The object as it would be; empty for a deletion."""
    old: JsonMap
    """The object as it is; empty for a creation."""

    @property
    def is_deleting(self) -> bool:
        """Whether the object is on its way out: then only what lets it go matters."""
        return "deletionTimestamp" in mapping(self.new, "metadata")


class Reads(Protocol):
    """What the webhook has to look up. Each raises when nothing answers: the request then fails or not by policy."""

    def may_get_secret(self, requester: Requester, *, namespace: str, name: str) -> bool:
        """Whether the requester may read a Secret, by the API server's own judgement."""

    def machine_of(self, *, namespace: str, name: str) -> str | None:
        """The name of a Machine that is not being deleted and refers to this TerraformMachine."""

    def is_paused(self, *, namespace: str, cluster: str) -> bool:
        """Whether a Cluster is paused."""

    def user_of_identity(self, name: str) -> str | None:
        """An object, as `Kind namespace/name`, that uses the identity, itself or through its cluster."""


def parse(document: JsonMap) -> Request:
    """The request in an AdmissionReview of version v1; raises `InputError` when there is none."""
    request = document.get("request")
    if document.get("apiVersion") != "admission.k8s.io/v1" or not isinstance(request, dict):
        raise InputError("this is no AdmissionReview of admission.k8s.io/v1 with a request")
    user = mapping(request, "userInfo")
    return Request(
        uid=str(request.get("uid", "")),
        kind=str(mapping(request, "kind").get("kind", "")),
        operation=str(request.get("operation", "")),
        namespace=str(request.get("namespace") or ""),
        name=str(request.get("name") or _own_name(mapping(request, "object"))),
        requester=Requester(
            name=str(user.get("username", "")),
            uid=str(user.get("uid", "")),
            groups=tuple(str(group) for group in cast("Sequence[object]", user.get("groups") or ())),
            extra=mapping(user, "extra"),
        ),
        is_dry_run=request.get("dryRun") is True,
        new=mapping(request, "object"),
        old=mapping(request, "oldObject"),
    )


def _own_name(document: JsonMap) -> object:
    """The name of an object that is about to get one, as far as it is known."""
    metadata = mapping(document, "metadata")
    return metadata.get("name") or metadata.get("generateName") or ""


def mapping(document: JsonMap, *path: str) -> JsonMap:
    """The object at a path; empty when it or a parent of it is not there."""
    found: object = document
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return cast("JsonMap", found) if isinstance(found, dict) else {}


def same(one: object, other: object) -> bool:
    """Whether two JSON values are equal: the order of keys is nothing, and `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return one == other
