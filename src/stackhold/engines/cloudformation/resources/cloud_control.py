"""Any type that AWS has handlers for, by the Cloud Control API: one handler object per type.

Its calls are requests: the answer is a token, and the outcome is polled for. The create's client token makes a
second send the same request; a request that failed for a reason that passes is made anew under a token of its own.
Deletes carry no token of ours: within 36 hours a repeated one would answer for an earlier resource of that name.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.patience import MOMENT_MS, rule_for
from stackhold.engines.cloudformation.resources import tags
from stackhold.engines.cloudformation.resources.cloud_control_model import (
    TagShape,
    attributes_of,
    desired_state,
    patch,
    properties_of,
    tag_shape,
)
from stackhold.engines.cloudformation.resources.handler import Context, FoundBy, Handler, Lost, Made, Seen, Want
from stackhold.engines.cloudformation.resources.polling import wait_visible
from stackhold.engines.cloudformation.schema import schema_for
from stackhold.errors import AwsError, OutcomeUnknown, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.model.instant import HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import ClassVar

    from stackhold.engines.cloudformation.values import Props

_SERVICE: Final = "cloudcontrol"
_GONE: Final = "ResourceNotFoundException"
_NOT_LISTED: Final = frozenset({"UnsupportedActionException", "InvalidRequestException", "GeneralServiceException"})
"""How ListResources says that a type cannot be listed, or not without more than its name."""
_FIRST_POLL_MS: Final = 250
_LONGEST_POLL_MS: Final = 5 * SECOND
_LONGEST_ADVISED_MS: Final = 30 * SECOND
_REQUEST_BUDGET_MS: Final = 2 * HOUR
"""Some resources take long; the run's own deadline most often ends the wait before."""
_THROTTLED_BUDGET_MS: Final = 10 * MINUTE
_IN_USE_BUDGET_MS: Final = 5 * MINUTE
_FIRST_PAUSE_MS: Final = 2 * SECOND
_LONGEST_PAUSE_MS: Final = 20 * SECOND

_SAME_AS: Final = {
    "AccessDenied": "AccessDeniedException",
    "InvalidRequest": "ValidationException",
    "GeneralServiceException": "ValidationException",
}
"""Which refusal of a service a handler's error code hides, to judge whether it is one that passes."""
_STATEFUL: Final = frozenset(
    f"AWS::{name}"
    for name in (
        "Cassandra::Table",
        "Cognito::UserPool",
        "DocDB::DBCluster",
        "DynamoDB::GlobalTable",
        "DynamoDB::Table",
        "EC2::Volume",
        "ECR::Repository",
        "EFS::FileSystem",
        "ElastiCache::ReplicationGroup",
        "FSx::FileSystem",
        "KMS::Key",
        "Kinesis::Stream",
        "Logs::LogGroup",
        "MemoryDB::Cluster",
        "Neptune::DBCluster",
        "OpenSearchService::Domain",
        "RDS::DBCluster",
        "RDS::DBInstance",
        "Redshift::Cluster",
        "S3::Bucket",
        "SQS::Queue",
        "SecretsManager::Secret",
        "Timestream::Table",
    )
)


class CloudControl(Handler):
    """One type by Cloud Control. `shape` is how it takes tags, where its schema does not say."""

    found_by: ClassVar[FoundBy] = FoundBy.TOKEN

    def __init__(self, type_name: TypeName, *, shape: TagShape | None = None) -> None:
        schema = schema_for(type_name)
        self._schema = schema
        self._shape = shape or tag_shape(schema)
        self.type = type_name  # type: ignore[misc]  # one class serves every type
        self.properties = frozenset(schema.properties.names if schema else ())  # type: ignore[misc]  # likewise
        self.where = tuple(pointer[0] for pointer in schema.primary_id) if schema else ()  # type: ignore[misc]  # likewise
        self.is_stateful = type_name in _STATEFUL  # type: ignore[misc]  # likewise

    def create(self, ctx: Context, want: Want) -> Made:
        """CreateResource, and the wait for it; then one read for the attributes."""
        params = {"DesiredState": _json(desired_state(want, self._shape))}
        event = self._request(ctx, "CreateResource", params, token=want.token, want=want)
        identifier = PhysicalId(str(event["Identifier"]))
        ctx.note(identifier)
        model = wait_visible(ctx, lambda: self._get(ctx, identifier, event), codes=(_GONE,))
        return self._made(identifier, model)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """GetResource."""
        model = self._look(ctx, physical_id)
        if model is None:
            return None
        return Seen(properties_of(model, self._schema, self._shape), attributes_of(model, self._schema))

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """UpdateResource with a patch against what is there; no call when nothing differs."""
        current = self._get(ctx, physical_id)
        operations = patch(old, want, current, schema=self._schema, shape=self._shape)
        if not operations:
            return self._made(physical_id, current)
        document = _json(operations)
        digest = hashlib.sha256(f"{self.type} {physical_id} {document}".encode()).hexdigest()
        params = {"Identifier": physical_id, "PatchDocument": document}
        event = self._request(ctx, "UpdateResource", params, token=f"{want.token}-{digest[:24]}", want=want)
        identifier = PhysicalId(str(event.get("Identifier") or physical_id))
        made = self._made(identifier, self._get(ctx, identifier, event))
        there, observed = properties_of(current, self._schema, self._shape), made.observed or {}
        moved = frozenset(name for name in {*there, *observed} if there.get(name) != observed.get(name))
        return replace(made, moved=moved)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """DeleteResource, and the wait for it; what is gone already is done."""
        try:
            self._request(ctx, "DeleteResource", {"Identifier": physical_id})
        except AwsError as error:
            if error.code not in (_GONE, "NotFound"):
                raise

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By the identifier, where the template names all of it; else among all of the type, by our tags. One without
        tags is ours when it belongs to another resource of the stack."""
        parts = [str(lost.place[name]) for name in self.where if isinstance(lost.place.get(name), str)]
        if parts and len(parts) == len(self.where):
            identifier = PhysicalId("|".join(parts))
            return identifier if identifier not in lost.known and self._is_lost(ctx, identifier, lost) else None
        if self._shape is None:
            raise ResourceFailed(f"{self.type} takes no tags, and its identifier is AWS's to choose")
        return next((each for each in self._listed(ctx, lost) if self._is_lost(ctx, each, lost)), None)

    def _listed(self, ctx: Context, lost: Lost) -> Iterator[PhysicalId]:
        """The identifiers of all of this type that nothing accounts for."""
        try:
            for page in ctx.aws.pages(_SERVICE, "ListResources", {"TypeName": self.type}):
                for item in page.get("ResourceDescriptions") or ():
                    if item["Identifier"] not in lost.known:
                        yield PhysicalId(item["Identifier"])
        except AwsError as error:
            if error.code not in _NOT_LISTED:
                raise
            raise ResourceFailed(f"Cloud Control cannot list {self.type}: {error.reason}") from error

    def _is_lost(self, ctx: Context, identifier: PhysicalId, lost: Lost) -> bool:
        model = self._look(ctx, identifier)
        if model is None:
            return False
        if self._shape is None and any(value in lost.stack for value in lost.place.values() if isinstance(value, str)):
            return True
        if self._shape is None:
            raise ResourceFailed(f"{self.type} {identifier} exists, takes no tags, and could be anybody's")
        return tags.are_ours(model.get(self._shape.property), lost)

    def _made(self, identifier: PhysicalId, model: Props) -> Made:
        return Made(
            physical_id=identifier,
            attributes=attributes_of(model, self._schema),
            observed=properties_of(model, self._schema, self._shape),
        )

    def _look(self, ctx: Context, identifier: PhysicalId) -> Props | None:
        try:
            return self._get(ctx, identifier)
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise

    def _get(self, ctx: Context, identifier: PhysicalId, event: Mapping[str, Any] | None = None) -> Props:
        """The resource as Cloud Control reads it; for a type that it cannot read, as the request's outcome says."""
        try:
            answer = ctx.aws.call(_SERVICE, "GetResource", {"TypeName": self.type, "Identifier": identifier})
        except AwsError as error:
            if error.code != "UnsupportedActionException" or event is None:
                raise
            return self._model(event.get("ResourceModel") or "{}", identifier)
        return self._model(answer["ResourceDescription"].get("Properties") or "{}", identifier)

    def _model(self, text: str, identifier: str) -> Props:
        try:
            model = json.loads(text)
        except ValueError as error:
            raise ResourceFailed(f"Cloud Control described {self.type} {identifier} in no JSON: {error}") from error
        if not isinstance(model, dict):
            raise ResourceFailed(f"Cloud Control described {self.type} {identifier} as no object")
        return model

    def _request(
        self,
        ctx: Context,
        operation: str,
        params: Mapping[str, Any],
        *,
        token: str | None = None,
        want: Want | None = None,
    ) -> Mapping[str, Any]:
        """Make a request and wait for its outcome, again while it fails for a reason that passes."""
        waited = attempt = 0
        pause = _FIRST_PAUSE_MS
        while True:
            sent: dict[str, Any] = {"TypeName": self.type, **params}
            if token is not None:
                sent["ClientToken"] = f"{token}-{attempt}" if attempt else token
            answer = ctx.aws.call(_SERVICE, operation, sent)
            event = self._outcome(ctx, operation, answer["ProgressEvent"])
            if event["OperationStatus"] == "SUCCESS":
                return event
            error = self._refusal(operation, event)
            if want is not None and operation == "CreateResource":
                self._note_left(ctx, event, want, error)
            budget = _budget(ctx, error, params)
            if waited + pause > budget:
                raise error
            if waited < MOMENT_MS <= waited + pause:
                ctx.waiting(error, "still in use" if error.code == "ResourceConflict" else "made again")
            ctx.wait(pause)
            waited += pause
            attempt += 1
            pause = min(pause * 2, _LONGEST_PAUSE_MS)

    def _outcome(self, ctx: Context, operation: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Poll until a request is over."""
        waited = 0
        pause = _FIRST_POLL_MS
        while event["OperationStatus"] in ("PENDING", "IN_PROGRESS", "CANCEL_IN_PROGRESS"):
            if waited > _REQUEST_BUDGET_MS:
                raise OutcomeUnknown(
                    service=_SERVICE,
                    operation=operation,
                    reason=f"{self.type}: still {event['OperationStatus']} after {_REQUEST_BUDGET_MS // HOUR} h",
                )
            step = max(pause, _advised_ms(event))
            ctx.wait(step)
            waited += step
            pause = min(pause * 2, _LONGEST_POLL_MS)
            asked = {"RequestToken": event["RequestToken"]}
            event = ctx.aws.call(_SERVICE, "GetResourceRequestStatus", asked)["ProgressEvent"]
        return event

    def _refusal(self, operation: str, event: Mapping[str, Any]) -> AwsError:
        """A request's failure as the refusal that it is."""
        if event["OperationStatus"] == "CANCEL_COMPLETE":
            code, reason = "RequestCancelled", "somebody cancelled the request"
        else:
            code = str(event.get("ErrorCode") or "GeneralServiceException")
            reason = " ".join(str(event.get("StatusMessage") or "no reason given").split())
        hint = ""
        if code == "NotUpdatable":
            hint = "AWS changes this property only by replacing the resource: give it another logical id."
        identifier = event.get("Identifier")
        named = f"{self.type} {identifier}" if identifier else str(self.type)
        return AwsError(service=_SERVICE, operation=operation, code=code, reason=f"{named}: {reason}", hint=hint)

    def _note_left(self, ctx: Context, event: Mapping[str, Any], want: Want, error: AwsError) -> None:
        """Say what a failed create has left; raises the failure unless that is surely nothing.

        A resource is ours when it carries our tags, or when its type takes none and the handler says that it came
        to be and never settled.
        """
        identifier = event.get("Identifier")
        if identifier and error.code != "AlreadyExists":
            model = self._look(ctx, PhysicalId(str(identifier)))
            if model is not None:
                if self._is_ours(model, want, error):
                    ctx.note(PhysicalId(str(identifier)))
                raise error
        ctx.made_nothing()

    def _is_ours(self, model: Props, want: Want, error: AwsError) -> bool:
        if self._shape is None:
            return error.code == "NotStabilized"
        return tags.are_ours(model.get(self._shape.property), want)


def _budget(ctx: Context, error: AwsError, params: Mapping[str, Any]) -> int:
    """For how long a failed request is made again; 0 when its failure is final."""
    if error.code == "Throttling":
        return _THROTTLED_BUDGET_MS
    if error.code == "ResourceConflict" and error.operation == "DeleteResource":
        return _IN_USE_BUDGET_MS
    judged = AwsError(
        service=_SERVICE,
        operation=error.operation,
        code=_SAME_AS.get(error.code, error.code),
        reason=error.reason,
    )
    rule = rule_for(judged, params, ctx.changed)
    return rule.budget_ms if rule else 0


def _advised_ms(event: Mapping[str, Any]) -> int:
    """How long AWS says to wait before the next look; both times are its own."""
    at, after = event.get("EventTime"), event.get("RetryAfter")
    if at is None or after is None:
        return 0
    return max(0, min(int((after - at).total_seconds() * SECOND), _LONGEST_ADVISED_MS))


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
