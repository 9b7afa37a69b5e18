"""Lambda functions.

Code and configuration are two calls that exclude each other while an update is in progress, so each waits for the
one before. Concurrency, runtime management, recursion and code signing are calls of their own, made once a new
function is active. The code itself is never read back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import finding, lambda_code, tags
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen, Settle
from stackhold.engines.cloudformation.resources.polling import wait_for
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "ResourceNotFoundException"
_BUSY_OR_EXISTS: Final = "ResourceConflictException"
_CONFIGURATION: Final = (
    "DeadLetterConfig",
    "Description",
    "Environment",
    "EphemeralStorage",
    "FileSystemConfigs",
    "Handler",
    "ImageConfig",
    "KmsKeyArn",
    "Layers",
    "LoggingConfig",
    "MemorySize",
    "Role",
    "Runtime",
    "SnapStart",
    "Timeout",
    "TracingConfig",
    "VpcConfig",
)
"""What UpdateFunctionConfiguration changes; CreateFunction takes all of it too."""
_AT_CREATE: Final = (*_CONFIGURATION, "Architectures", "CodeSigningConfigArn", "PackageType", "TenancyConfig")
_AFTERWARDS: Final = ("ReservedConcurrentExecutions", "RuntimeManagementConfig", "RecursiveLoop")
"""Set by calls of their own, once the function is active."""
_API_NAMES: Final = {"KmsKeyArn": "KMSKeyArn"}


class Function(Handler):
    """AWS::Lambda::Function. The physical id is its name."""

    type: ClassVar[TypeName] = TypeName("AWS::Lambda::Function")
    properties: ClassVar[frozenset[str]] = frozenset({*_AT_CREATE, *_AFTERWARDS, "Code", "FunctionName", "Tags"})
    name_rule: ClassVar[NameRule | None] = NameRule(property="FunctionName", limit=64)
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    write_only: ClassVar[frozenset[str]] = frozenset({"Code"})
    defaults: ClassVar[Mapping[str, Any]] = {
        "Architectures": ["x86_64"],
        "CodeSigningConfigArn": "",
        "DeadLetterConfig": {"TargetArn": ""},
        "Description": "",
        "Environment": {"Variables": {}},
        "EphemeralStorage": {"Size": 512},
        "FileSystemConfigs": [],
        "ImageConfig": {},
        "KmsKeyArn": "",
        "Layers": [],
        "MemorySize": 128,
        "PackageType": "Zip",
        "RecursiveLoop": "Terminate",
        "RuntimeManagementConfig": {"UpdateRuntimeOn": "Auto"},
        "SnapStart": {"ApplyOn": "None"},
        "Tags": [],
        "Timeout": 3,
        "TracingConfig": {"Mode": "PassThrough"},
        "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": [], "Ipv6AllowedForDualStack": False},
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """CreateFunction, then the calls that CreateFunction does not take."""
        properties = want.properties
        params: dict[str, Any] = {
            "FunctionName": want.name,
            "Code": lambda_code.code_params(properties["Code"], properties.get("Runtime") or ""),
            "Tags": tags.for_create(want),
        }
        for name in _AT_CREATE:
            if properties.get(name) not in (None, "", []):
                params[_API_NAMES.get(name, name)] = properties[name]
        try:
            made = ctx.aws.call("lambda", "CreateFunction", params)
        except AwsError as error:
            if error.code != _BUSY_OR_EXISTS:
                raise
            made = self._ours(ctx, want, error)
        if any(properties.get(name) is not None for name in _AFTERWARDS):
            if not _is_settled(made):
                made = self._wait_settled(ctx, want.name)
            self._afterwards(ctx, want.name, {}, properties)
        observed = self._shape(made, properties)
        observed["Tags"] = tags.visible_list(tags.of_template(want))
        observed |= {name: properties[name] for name in _AFTERWARDS if properties.get(name) is not None}
        return Made(PhysicalId(want.name), _attributes(made), is_settled=_is_settled(made), observed=observed)

    def _ours(self, ctx: Context, want: Want, refused: AwsError) -> dict[str, Any]:
        """The function of that name, if this very create made it earlier. The same code means "busy", too."""
        answer = ctx.aws.call("lambda", "GetFunction", {"FunctionName": want.name})
        if not tags.are_ours(answer.get("Tags"), want):
            raise tags.foreign(
                "function", want.name, service="lambda", operation="CreateFunction", code=refused.code
            ) from refused
        configuration: dict[str, Any] = answer["Configuration"]
        return configuration

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The function of that name."""
        try:
            answer = ctx.aws.call("lambda", "GetFunction", {"FunctionName": lost.name})
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise
        return finding.named(lost, lost.name, answer.get("Tags") or {})

    def _afterwards(self, ctx: Context, name: str, old: Props, new: Props) -> None:
        """Concurrency, runtime management and recursion where they differ; removed ones go back to the default."""
        function = {"FunctionName": name}
        reserved = new.get("ReservedConcurrentExecutions")
        if reserved != old.get("ReservedConcurrentExecutions"):
            if reserved is None:
                ctx.aws.call("lambda", "DeleteFunctionConcurrency", function)
            else:
                concurrency = {**function, "ReservedConcurrentExecutions": reserved}
                ctx.aws.call("lambda", "PutFunctionConcurrency", concurrency)
        runtime = new.get("RuntimeManagementConfig")
        if runtime != old.get("RuntimeManagementConfig"):
            wanted = runtime or self.defaults["RuntimeManagementConfig"]
            ctx.aws.call("lambda", "PutRuntimeManagementConfig", {**function, **wanted})
        loop = new.get("RecursiveLoop")
        if loop != old.get("RecursiveLoop"):
            wanted = {**function, "RecursiveLoop": loop or self.defaults["RecursiveLoop"]}
            ctx.aws.call("lambda", "PutFunctionRecursionConfig", wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Code, configuration, then what has calls of its own. Each waits until the one before is carried out."""
        new = want.properties
        answer: dict[str, Any] | None = None
        if lambda_code.differs(old, new):
            params = lambda_code.code_params(new["Code"], new.get("Runtime") or "")
            params["Architectures"] = new.get("Architectures") or self.defaults["Architectures"]
            answer = self._when_free(ctx, physical_id, "UpdateFunctionCode", params)
        changes = self._configuration_changes(physical_id, old, new)
        if changes:
            if answer is not None and not _is_settled(answer):
                self._wait_settled(ctx, physical_id)
            answer = self._when_free(ctx, physical_id, "UpdateFunctionConfiguration", changes)
        self._update_signing(ctx, physical_id, old, new)
        if any(old.get(name) != new.get(name) for name in _AFTERWARDS):
            if answer is not None and not _is_settled(answer):
                answer = self._wait_settled(ctx, physical_id)
            self._afterwards(ctx, physical_id, old, new)
        self._update_tags(ctx, physical_id, old, want)
        return Made(physical_id, is_settled=answer is None or _is_settled(answer))

    def _configuration_changes(self, name: str, old: Props, new: Props) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for key in _CONFIGURATION:
            if old.get(key) == new.get(key):
                continue
            value = new.get(key, self.defaults.get(key))
            if key == "LoggingConfig" and new.get(key) is None:
                value = {"LogFormat": "Text", "LogGroup": _log_group(name)}
            if value is not None:
                changes[_API_NAMES.get(key, key)] = value
        return changes

    def _update_signing(self, ctx: Context, name: str, old: Props, new: Props) -> None:
        arn = new.get("CodeSigningConfigArn") or ""
        if arn == (old.get("CodeSigningConfigArn") or ""):
            return
        if arn:
            wanted = {"FunctionName": name, "CodeSigningConfigArn": arn}
            ctx.aws.call("lambda", "PutFunctionCodeSigningConfig", wanted)
        else:
            ctx.aws.call("lambda", "DeleteFunctionCodeSigningConfig", {"FunctionName": name})

    def _update_tags(self, ctx: Context, name: str, old: Props, want: Want) -> None:
        change = tags.change(old.get("Tags"), tags.of_template(want))
        arn = f"arn:{ctx.partition}:lambda:{ctx.region}:{ctx.account}:function:{name}"
        if change.put:
            ctx.aws.call("lambda", "TagResource", {"Resource": arn, "Tags": dict(change.put)})
        if change.remove:
            ctx.aws.call("lambda", "UntagResource", {"Resource": arn, "TagKeys": list(change.remove)})

    def _when_free(self, ctx: Context, name: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Make an update call; when another update is in progress, wait it out and make the call once more."""
        wanted = {"FunctionName": name, **params}
        try:
            return ctx.aws.call("lambda", operation, wanted)
        except AwsError as error:
            if error.code != _BUSY_OR_EXISTS:
                raise
        self._wait_settled(ctx, name)
        return ctx.aws.call("lambda", operation, wanted)

    def _wait_settled(self, ctx: Context, name: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            configuration = ctx.aws.call("lambda", "GetFunctionConfiguration", {"FunctionName": name})
            return configuration if _is_settled(configuration) else None

        return wait_for(ctx, look, budget_ms=self.settle_timeout_ms, what=f"function {name}: becoming active")

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Active, and no update in progress."""
        configuration = ctx.aws.call("lambda", "GetFunctionConfiguration", {"FunctionName": physical_id})
        return (Settle.DONE if _is_settled(configuration) else Settle.PENDING), None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """GetFunction, and a call for each declared property that has one of its own."""
        try:
            answer = ctx.aws.call("lambda", "GetFunction", {"FunctionName": physical_id})
            configuration = answer["Configuration"]
            seen = self._shape(configuration, properties)
            seen["Tags"] = tags.visible_list(answer.get("Tags"))
            reserved = (answer.get("Concurrency") or {}).get("ReservedConcurrentExecutions")
            if reserved is not None:
                seen["ReservedConcurrentExecutions"] = reserved
            for name, read in _OWN_READS.items():
                if properties.get(name) is not None:
                    seen[name] = read(ctx, physical_id)
        except AwsError as error:
            if error.code == _GONE:
                return None
            raise
        return Seen(seen, _attributes(configuration))

    def _shape(self, configuration: Mapping[str, Any], properties: Props) -> dict[str, Any]:
        seen = dict(self.defaults)
        for name in ("RecursiveLoop", "RuntimeManagementConfig", "CodeSigningConfigArn", "ImageConfig"):
            del seen[name]
        for name in ("FunctionName", *_AT_CREATE):
            value = configuration.get(_API_NAMES.get(name, name))
            if value is not None:
                seen[name] = value
        seen["Layers"] = [layer["Arn"] for layer in configuration.get("Layers") or ()]
        seen["SnapStart"] = {"ApplyOn": (configuration.get("SnapStart") or {}).get("ApplyOn", "None")}
        image = (configuration.get("ImageConfigResponse") or {}).get("ImageConfig")
        if image:
            seen["ImageConfig"] = image
        seen["Environment"] = {"Variables": (configuration.get("Environment") or {}).get("Variables") or {}}
        vpc = configuration.get("VpcConfig") or {}
        seen["VpcConfig"] = _as_declared(
            {**self.defaults["VpcConfig"], **{key: value for key, value in vpc.items() if key != "VpcId"}},
            properties.get("VpcConfig"),
            self.defaults["VpcConfig"],
        )
        logging = {"LogFormat": "Text", "LogGroup": _log_group(configuration["FunctionName"])}
        seen["LoggingConfig"] = _as_declared(
            {**logging, **(configuration.get("LoggingConfig") or {})},
            properties.get("LoggingConfig"),
            {**logging, "ApplicationLogLevel": "INFO", "SystemLogLevel": "INFO"},
        )
        return seen

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete the function with all its versions, aliases and permissions."""
        try:
            ctx.aws.call("lambda", "DeleteFunction", {"FunctionName": physical_id})
        except AwsError as error:
            if error.code != _GONE:
                raise


def _is_settled(configuration: Mapping[str, Any]) -> bool:
    """Whether a configuration is Active with no update in progress; raises when either has failed."""
    state = configuration.get("State") or "Active"
    update = configuration.get("LastUpdateStatus") or "Successful"
    name = configuration.get("FunctionName", "")
    if state == "Failed":
        raise ResourceFailed(f"function {name} failed: {_reason(configuration, 'State')}")
    if update == "Failed":
        raise ResourceFailed(f"function {name}: its update failed: {_reason(configuration, 'LastUpdateStatus')}")
    return state in ("Active", "Inactive") and update == "Successful"


def _reason(configuration: Mapping[str, Any], what: str) -> str:
    code = configuration.get(f"{what}ReasonCode") or "no reason code"
    return f"{code}: {configuration.get(f'{what}Reason') or 'no reason given'}"


def _attributes(configuration: Mapping[str, Any]) -> dict[str, Any]:
    found = {"Arn": configuration["FunctionArn"], "FunctionName": configuration["FunctionName"]}
    snap = configuration.get("SnapStart")
    if snap and snap.get("ApplyOn", "None") != "None":
        found["SnapStartResponse.ApplyOn"] = snap["ApplyOn"]
        found["SnapStartResponse.OptimizationStatus"] = snap.get("OptimizationStatus", "Off")
    return found


def _log_group(name: str) -> str:
    return f"/aws/lambda/{name}"


def _as_declared(seen: dict[str, Any], declared: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Without what AWS fills in by itself, for an object of which the template declares a part."""
    if not isinstance(declared, dict):
        return seen
    return {key: value for key, value in seen.items() if key in declared or value != defaults.get(key)}


def _read_runtime_management(ctx: Context, name: str) -> Any:
    answer = ctx.aws.call("lambda", "GetRuntimeManagementConfig", {"FunctionName": name})
    return {key: answer[key] for key in ("UpdateRuntimeOn", "RuntimeVersionArn") if answer.get(key)}


def _read_recursion(ctx: Context, name: str) -> Any:
    return ctx.aws.call("lambda", "GetFunctionRecursionConfig", {"FunctionName": name}).get("RecursiveLoop")


def _read_signing(ctx: Context, name: str) -> Any:
    answer = ctx.aws.call("lambda", "GetFunctionCodeSigningConfig", {"FunctionName": name})
    return answer.get("CodeSigningConfigArn") or ""


_OWN_READS: Final[Mapping[str, Callable[[Context, str], Any]]] = {
    "RuntimeManagementConfig": _read_runtime_management,
    "RecursiveLoop": _read_recursion,
    "CodeSigningConfigArn": _read_signing,
}
