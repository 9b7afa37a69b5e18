"""IAM roles and inline policies.

A role is one create call and one call per attached or inline policy; an inline policy resource is one call per
role, user and group. Inline policies carry no tags, so one that is there already with another content is never
overwritten. A role's own `Policies` are read by their declared names alone: other resources of the stack put inline
policies on the same role. Drift lists them all, and takes away what the whole stack accounts for.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from stackhold.engines.cloudformation.resources import documents, finding, tags
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.record import ResourceRecord

_GONE: Final = "NoSuchEntity"
_EXISTS: Final = "EntityAlreadyExists"
_TAKEN: Final = "AlreadyExists"
"""Our own refusal; IAM has no such code."""
_PLACING: Final = frozenset({"AWS::IAM::Policy", "AWS::IAM::RolePolicy"})
"""The types that put an inline policy on a role."""


@contextlib.contextmanager
def _gone_is_done() -> Iterator[None]:
    try:
        yield
    except AwsError as error:
        if error.code != _GONE:
            raise


def _inline(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A role's `Policies` as documents by name."""
    policies = properties.get("Policies")
    if not isinstance(policies, list | tuple):
        return {}
    return {policy["PolicyName"]: policy["PolicyDocument"] for policy in policies}


class Role(Handler):
    """AWS::IAM::Role. The physical id is its name."""

    type: ClassVar[TypeName] = TypeName("AWS::IAM::Role")
    properties: ClassVar[frozenset[str]] = frozenset(
        {
            "AssumeRolePolicyDocument",
            "Description",
            "ManagedPolicyArns",
            "MaxSessionDuration",
            "Path",
            "PermissionsBoundary",
            "Policies",
            "RoleName",
            "Tags",
        }
    )
    name_rule: ClassVar[NameRule | None] = NameRule(property="RoleName", limit=64)
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    defaults: ClassVar[Mapping[str, Any]] = {
        "Description": "",
        "ManagedPolicyArns": [],
        "MaxSessionDuration": 3600,
        "Path": "/",
        "PermissionsBoundary": "",
        "Policies": [],
        "Tags": [],
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """CreateRole, then what is attached to it."""
        properties = want.properties
        params: dict[str, Any] = {
            "RoleName": want.name,
            "AssumeRolePolicyDocument": documents.as_text(properties["AssumeRolePolicyDocument"]),
            "Tags": tags.as_list(tags.for_create(want)),
        }
        for name in ("Path", "Description", "MaxSessionDuration", "PermissionsBoundary"):
            if properties.get(name) not in (None, ""):
                params[name] = properties[name]
        try:
            role = ctx.aws.call("iam", "CreateRole", params)["Role"]
        except AwsError as error:
            if error.code != _EXISTS:
                raise
            role = self._ours(ctx, want, error)
        for arn in properties.get("ManagedPolicyArns") or ():
            ctx.aws.call("iam", "AttachRolePolicy", {"RoleName": want.name, "PolicyArn": arn})
        for name, document in _inline(properties).items():
            _put_role_policy(ctx, want.name, name, document)
        observed = self._shape(role, properties)
        observed["ManagedPolicyArns"] = list(properties.get("ManagedPolicyArns") or ())
        observed["Policies"] = [
            {"PolicyName": name, "PolicyDocument": documents.as_data(document)}
            for name, document in _inline(properties).items()
        ]
        observed["Tags"] = tags.visible_list(tags.of_template(want))
        return Made(PhysicalId(want.name), _role_attributes(role), observed=observed)

    def _ours(self, ctx: Context, want: Want, refused: AwsError) -> dict[str, Any]:
        """The role of that name, if this very create made it earlier."""
        role: dict[str, Any] = ctx.aws.call("iam", "GetRole", {"RoleName": want.name})["Role"]
        if not tags.are_ours(role.get("Tags"), want):
            raise tags.foreign("role", want.name, service="iam", operation="CreateRole", code=refused.code) from refused
        return role

    def place(self, properties: Props) -> Props:
        """The names of its own inline policies: a read looks for these alone."""
        return {"Policies": [{"PolicyName": name, "PolicyDocument": {}} for name in _inline(properties)]}

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The role of that name."""
        try:
            role = ctx.aws.call("iam", "GetRole", {"RoleName": lost.name})["Role"]
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise
        return finding.named(lost, lost.name, role.get("Tags") or [])

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """GetRole, its managed policies, and each inline policy that is declared."""
        try:
            role = ctx.aws.call("iam", "GetRole", {"RoleName": physical_id})["Role"]
            seen = self._shape(role, properties)
            seen["ManagedPolicyArns"] = [
                policy["PolicyArn"]
                for page in ctx.aws.pages("iam", "ListAttachedRolePolicies", {"RoleName": physical_id})
                for policy in page["AttachedPolicies"]
            ]
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise
        found = [(name, _get_policy(ctx, _ROLE, physical_id, name)) for name in _inline(properties)]
        seen["Policies"] = [
            {"PolicyName": name, "PolicyDocument": document} for name, document in found if document is not None
        ]
        return Seen(seen, _role_attributes(role))

    def foreign(
        self, ctx: Context, physical_id: PhysicalId, properties: Props, *, stack: Sequence[ResourceRecord]
    ) -> Mapping[str, Any]:
        """Inline policies that nothing recorded has put on the role: they give it rights that no template shows."""
        ours = {*_inline(properties), *(name for entry in stack for name in _placed_on(physical_id, entry))}
        listed = _policies_on(ctx, physical_id)
        return {f"Policies.{name}": {"PolicyName": name} for name in listed if name not in ours}

    def _shape(self, role: Mapping[str, Any], properties: Props) -> dict[str, Any]:
        boundary = role.get("PermissionsBoundary") or {}
        return {
            "RoleName": role["RoleName"],
            "Path": role.get("Path", "/"),
            "Description": role.get("Description", ""),
            "MaxSessionDuration": role.get("MaxSessionDuration", 3600),
            "PermissionsBoundary": boundary.get("PermissionsBoundaryArn", ""),
            "AssumeRolePolicyDocument": documents.as_data(
                role.get("AssumeRolePolicyDocument", properties.get("AssumeRolePolicyDocument"))
            ),
            "Tags": tags.visible_list(role.get("Tags")),
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call per kind of change; what is new is attached before what is old goes."""
        new = want.properties
        role = {"RoleName": physical_id}
        described = {name: new.get(name, self.defaults[name]) for name in ("Description", "MaxSessionDuration")}
        if described != {name: old.get(name, self.defaults[name]) for name in described}:
            ctx.aws.call("iam", "UpdateRole", {**role, **described})
        trust = new["AssumeRolePolicyDocument"]
        if not documents.same(old.get("AssumeRolePolicyDocument"), trust):
            ctx.aws.call("iam", "UpdateAssumeRolePolicy", {**role, "PolicyDocument": documents.as_text(trust)})
        boundary = new.get("PermissionsBoundary") or ""
        if boundary != (old.get("PermissionsBoundary") or ""):
            if boundary:
                ctx.aws.call("iam", "PutRolePermissionsBoundary", {**role, "PermissionsBoundary": boundary})
            else:
                with _gone_is_done():
                    ctx.aws.call("iam", "DeleteRolePermissionsBoundary", role)
        self._change_policies(ctx, physical_id, old, new)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if change.put:
            ctx.aws.call("iam", "TagRole", {**role, "Tags": tags.as_list(change.put)})
        if change.remove:
            ctx.aws.call("iam", "UntagRole", {**role, "TagKeys": list(change.remove)})
        return Made(physical_id)

    def _change_policies(self, ctx: Context, name: str, old: Props, new: Props) -> None:
        had, has = old.get("ManagedPolicyArns") or [], new.get("ManagedPolicyArns") or []
        for arn in has:
            if arn not in had:
                ctx.aws.call("iam", "AttachRolePolicy", {"RoleName": name, "PolicyArn": arn})
        _detach(ctx, name, [arn for arn in had if arn not in has])
        before, after = _inline(old), _inline(new)
        for policy, document in after.items():
            if policy not in before or not documents.same(before[policy], document):
                _put_role_policy(ctx, name, policy, document)
        _delete_inline(ctx, name, [policy for policy in before if policy not in after])

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Take off what the record says we put on, then delete. Anything else on it is AWS's DeleteConflict."""
        _detach(ctx, physical_id, properties.get("ManagedPolicyArns") or [])
        _delete_inline(ctx, physical_id, list(_inline(properties)))
        with _gone_is_done():
            ctx.aws.call("iam", "DeleteRole", {"RoleName": physical_id})


def _policies_on(ctx: Context, role: str) -> list[str]:
    """The names of all inline policies on a role, whoever put them there."""
    try:
        pages = list(ctx.aws.pages("iam", "ListRolePolicies", {"RoleName": role}))
    except AwsError as error:
        if error.code == _GONE:
            return []
        raise
    return [name for page in pages for name in page["PolicyNames"]]


def _placed_on(role: str, entry: ResourceRecord) -> tuple[str, ...]:
    """The names of the inline policies that a recorded resource has put on a role."""
    roles = entry.properties.get("Roles" if entry.type == Policy.type else "RoleName")
    if entry.type not in _PLACING or (roles != role and role not in (roles if isinstance(roles, list) else ())):
        return ()
    return (str(entry.properties.get("PolicyName", "")), str(entry.physical_id))


def _role_attributes(role: Mapping[str, Any]) -> dict[str, Any]:
    return {"Arn": role["Arn"], "RoleId": role["RoleId"]}


def _put_role_policy(ctx: Context, role: str, name: str, document: Any) -> None:
    _put_policy(ctx, _ROLE, role, name, document)


def _detach(ctx: Context, role: str, arns: list[str]) -> None:
    for arn in arns:
        with _gone_is_done():
            ctx.aws.call("iam", "DetachRolePolicy", {"RoleName": role, "PolicyArn": arn})


def _delete_inline(ctx: Context, role: str, names: list[str]) -> None:
    for name in names:
        _delete_policy(ctx, _ROLE, role, name)


class _Owner(NamedTuple):
    """A kind of identity that inline policies hang on: `PutRolePolicy` takes `RoleName`, and so on."""

    kind: str
    property: str

    def params(self, owner: str, policy: str) -> dict[str, Any]:
        return {f"{self.kind}Name": owner, "PolicyName": policy}


_ROLE: Final = _Owner("Role", "Roles")
_OWNERS: Final = (_ROLE, _Owner("User", "Users"), _Owner("Group", "Groups"))


def _put_policy(
    ctx: Context,
    owner: _Owner,
    name: str,
    policy: str,
    document: Any,
    *,
    look: Callable[[], object] | None = None,
) -> None:
    params = {**owner.params(name, policy), "PolicyDocument": documents.as_text(document)}
    ctx.aws.call("iam", f"Put{owner.kind}Policy", params, look=look)


def _get_policy(ctx: Context, owner: _Owner, name: str, policy: str) -> Any:
    """The document, or None when the policy or its owner is not there."""
    try:
        answer = ctx.aws.call("iam", f"Get{owner.kind}Policy", owner.params(name, policy))
    except AwsError as error:
        if error.code == _GONE:
            return None
        raise
    return documents.as_data(answer["PolicyDocument"])


def _delete_policy(ctx: Context, owner: _Owner, name: str, policy: str) -> None:
    with _gone_is_done():
        ctx.aws.call("iam", f"Delete{owner.kind}Policy", owner.params(name, policy))


class Policy(Handler):
    """AWS::IAM::Policy: one inline policy on each of its roles, users and groups. The physical id is its name."""

    type: ClassVar[TypeName] = TypeName("AWS::IAM::Policy")
    properties: ClassVar[frozenset[str]] = frozenset({"Groups", "PolicyDocument", "PolicyName", "Roles", "Users"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("PolicyName", "Roles", "Users", "Groups")
    scope: ClassVar[tuple[str, ...]] = ("Roles", "Users", "Groups")
    defaults: ClassVar[Mapping[str, Any]] = {"Groups": [], "Roles": [], "Users": []}

    def create(self, ctx: Context, want: Want) -> Made:
        """Put it on each owner, once it is clear that nothing else of that name would be overwritten; the same before
        each further try."""
        name, document = want.properties["PolicyName"], want.properties["PolicyDocument"]
        for owner, identity in _identities(want.properties):
            self._refuse_foreign(ctx, owner, identity, name, document)
        ctx.note(PhysicalId(name))
        self._put_on_all(ctx, list(_identities(want.properties)), name, document)
        observed = {
            "PolicyName": name,
            "PolicyDocument": documents.as_data(document),
            **{owner.property: list(want.properties[owner.property]) for owner in _OWNERS if _has(want, owner)},
        }
        return Made(PhysicalId(name), _policy_attributes(name), observed=observed)

    def _put_on_all(self, ctx: Context, owners: Sequence[tuple[_Owner, str]], name: str, document: Any) -> None:
        """Once another's is met under way, the first ones go again here: what goes back knows the name alone."""
        for at, (owner, identity) in enumerate(owners):
            look = functools.partial(self._refuse_foreign, ctx, owner, identity, name, document)
            try:
                _put_policy(ctx, owner, identity, name, document, look=look)
            except AwsError as refused:
                if refused.code == _TAKEN:
                    for one, its in owners[:at]:
                        _delete_policy(ctx, one, its, name)
                    ctx.made_nothing()
                raise

    def _refuse_foreign(self, ctx: Context, owner: _Owner, identity: str, name: str, document: Any) -> None:
        """An identity that this run made has no foreign policies; on any other one, look first."""
        if ctx.changed(identity):
            return
        there = _get_policy(ctx, owner, identity, name)
        if there is not None and not documents.same(there, document):
            raise tags.foreign(
                "inline policy",
                f"{name} of {identity}",
                service="iam",
                operation=f"Put{owner.kind}Policy",
                code=_TAKEN,
            )

    def place(self, properties: Props) -> Props:
        """Name and owners, and what the policy says as far as that is known."""
        return {**super().place(properties), **finding.content(properties, "PolicyDocument")}

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The policy on one of its owners. On an identity of somebody else only one that says just this is ours."""
        name = str(lost.place["PolicyName"])
        for owner, identity in _identities(lost.place):
            there = _get_policy(ctx, owner, identity, name)
            is_ours = identity in lost.stack or finding.says(lost.place, "PolicyDocument", there)
            if there is not None and is_ours and name not in lost.known:
                return PhysicalId(name)
        return None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The policy on each declared owner; an owner that lacks it is left out, and any that differs shows."""
        wanted = properties.get("PolicyDocument")
        found: list[tuple[_Owner, str, Any]] = []
        for owner, identity in _identities(properties):
            document = _get_policy(ctx, owner, identity, physical_id)
            if document is not None:
                found.append((owner, identity, document))
        if not found:
            return None
        differing = [document for _, _, document in found if not documents.same(document, wanted)]
        seen: dict[str, Any] = {
            "PolicyName": str(physical_id),
            "PolicyDocument": differing[0] if differing else found[0][2],
        }
        for kind in _OWNERS:
            if properties.get(kind.property) is not None:
                seen[kind.property] = [identity for owner, identity, _ in found if owner is kind]
        return Seen(seen, _policy_attributes(physical_id))

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Put it where it is new or differs, then take it off where it no longer belongs. A new name is a new id."""
        new = want.properties
        name, document = new["PolicyName"], new["PolicyDocument"]
        before, after = list(_identities(old)), list(_identities(new))
        is_same = name == physical_id and documents.same(old.get("PolicyDocument"), document)
        for owner, identity in after:
            if name != physical_id or (owner, identity) not in before:
                self._refuse_foreign(ctx, owner, identity, name, document)
        for owner, identity in after:
            if not is_same or (owner, identity) not in before:
                _put_policy(ctx, owner, identity, name, document)
        for owner, identity in before:
            if name != physical_id or (owner, identity) not in after:
                _delete_policy(ctx, owner, identity, physical_id)
        return Made(PhysicalId(name), _policy_attributes(name))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Take it off every owner; one that is gone took it along."""
        for owner, identity in _identities(properties):
            _delete_policy(ctx, owner, identity, physical_id)


def _has(want: Want, owner: _Owner) -> bool:
    return want.properties.get(owner.property) is not None


def _identities(properties: Mapping[str, Any]) -> Iterator[tuple[_Owner, str]]:
    for owner in _OWNERS:
        for identity in properties.get(owner.property) or ():
            yield owner, identity


def _policy_attributes(name: str) -> dict[str, Any]:
    return {"PolicyName": str(name), "Id": str(name)}
