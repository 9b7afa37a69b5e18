"""A bucket's configurations, as a template writes them and as S3 takes and gives them (pure).

Each pair turns one property; nothing that a template leaves open is added on the way, and a key that is not
known here is passed on, so that S3's model refuses it instead of our dropping it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.resources.shapes import present, renamed

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_ENCRYPTION: Final = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}


def turned(names: Mapping[str, str]) -> dict[str, str]:
    """The same renaming backwards."""
    return {new: old for old, new in names.items()}


def encryption_to(value: Mapping[str, Any]) -> dict[str, Any]:
    """`BucketEncryption`."""
    return {"Rules": [renamed(rule, _DEFAULT_ENCRYPTION) for rule in value["ServerSideEncryptionConfiguration"]]}


def encryption_from(config: Mapping[str, Any], declared: Mapping[str, Any] | None) -> dict[str, Any]:
    """`BucketEncryption`. The encryption types that S3 blocks by itself are not shown where none are declared."""
    rules = [renamed(rule, turned(_DEFAULT_ENCRYPTION)) for rule in config.get("Rules", [])]
    wanted = (declared or {}).get("ServerSideEncryptionConfiguration") or []
    if not any("BlockedEncryptionTypes" in rule for rule in wanted):
        rules = [{key: value for key, value in rule.items() if key != "BlockedEncryptionTypes"} for rule in rules]
    return {"ServerSideEncryptionConfiguration": rules}


_CORS: Final = {"Id": "ID", "ExposedHeaders": "ExposeHeaders", "MaxAge": "MaxAgeSeconds"}


def cors_to(value: Mapping[str, Any]) -> dict[str, Any]:
    """`CorsConfiguration`."""
    return {"CORSRules": [renamed(rule, _CORS) for rule in value["CorsRules"]]}


def cors_from(answer: Mapping[str, Any]) -> dict[str, Any]:
    """`CorsConfiguration`."""
    return {"CorsRules": [renamed(rule, turned(_CORS)) for rule in answer.get("CORSRules", [])]}


_LOGGING: Final = {"DestinationBucketName": "TargetBucket", "LogFilePrefix": "TargetPrefix"}


def logging_to(value: Mapping[str, Any], *, bucket: str) -> dict[str, Any]:
    """`LoggingConfiguration`; without a destination the bucket logs into itself."""
    return {"LoggingEnabled": {"TargetBucket": bucket, "TargetPrefix": "", **renamed(value, _LOGGING)}}


def logging_from(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """`LoggingConfiguration`, or None when it is off."""
    enabled = answer.get("LoggingEnabled")
    if not enabled:
        return None
    return {key: value for key, value in renamed(enabled, turned(_LOGGING)).items() if value not in ("", [])}


_ROUTING: Final = {"RedirectRule": "Redirect", "RoutingRuleCondition": "Condition"}


def website_to(value: Mapping[str, Any]) -> dict[str, Any]:
    """`WebsiteConfiguration`."""
    config = dict(value)
    if "IndexDocument" in config:
        config["IndexDocument"] = {"Suffix": config["IndexDocument"]}
    if "ErrorDocument" in config:
        config["ErrorDocument"] = {"Key": config["ErrorDocument"]}
    if "RoutingRules" in config:
        config["RoutingRules"] = [renamed(rule, _ROUTING) for rule in config["RoutingRules"]]
    return config


def website_from(answer: Mapping[str, Any]) -> dict[str, Any]:
    """`WebsiteConfiguration`."""
    shown = present(
        {
            "IndexDocument": (answer.get("IndexDocument") or {}).get("Suffix"),
            "ErrorDocument": (answer.get("ErrorDocument") or {}).get("Key"),
            "RedirectAllRequestsTo": answer.get("RedirectAllRequestsTo"),
        }
    )
    if answer.get("RoutingRules"):
        shown["RoutingRules"] = [renamed(rule, turned(_ROUTING)) for rule in answer["RoutingRules"]]
    return shown


_NOTIFIED: Final = (
    ("LambdaConfigurations", "LambdaFunctionConfigurations", "Function", "LambdaFunctionArn"),
    ("QueueConfigurations", "QueueConfigurations", "Queue", "QueueArn"),
    ("TopicConfigurations", "TopicConfigurations", "Topic", "TopicArn"),
)
"""Template's list, S3's list, template's target, S3's target."""


def notification_to(value: Mapping[str, Any]) -> dict[str, Any]:
    """`NotificationConfiguration`."""
    known = {ours for ours, *_ in _NOTIFIED} | {"EventBridgeConfiguration"}
    config: dict[str, Any] = {key: entry for key, entry in value.items() if key not in known}
    for ours, theirs, target, arn in _NOTIFIED:
        if value.get(ours):
            config[theirs] = [_notified_to(entry, target, arn) for entry in value[ours]]
    bridge = value.get("EventBridgeConfiguration")
    if bridge is not None and bridge.get("EventBridgeEnabled", True):
        config["EventBridgeConfiguration"] = {}
    return config


def _notified_to(entry: Mapping[str, Any], target: str, arn: str) -> dict[str, Any]:
    config: dict[str, Any] = {"Events": [entry["Event"]], arn: entry[target]}
    rules = ((entry.get("Filter") or {}).get("S3Key") or {}).get("Rules")
    if rules:
        config["Filter"] = {"Key": {"FilterRules": [dict(rule) for rule in rules]}}
    return config


def notification_from(answer: Mapping[str, Any], declared: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`NotificationConfiguration`, or None when nobody is told. Several events of one entry are as many entries."""
    shown: dict[str, Any] = {}
    for ours, theirs, target, arn in _NOTIFIED:
        entries = [
            _notified_from(entry, event, target, arn) for entry in answer.get(theirs) or [] for event in entry["Events"]
        ]
        if entries:
            shown[ours] = _in_case_of((declared or {}).get(ours) or [], entries)
    if answer.get("EventBridgeConfiguration") is not None:
        shown["EventBridgeConfiguration"] = (declared or {}).get("EventBridgeConfiguration") or {
            "EventBridgeEnabled": True
        }
    return shown or None


def _notified_from(entry: Mapping[str, Any], event: str, target: str, arn: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"Event": event, target: entry[arn]}
    rules = ((entry.get("Filter") or {}).get("Key") or {}).get("FilterRules")
    if rules:
        shown["Filter"] = {"S3Key": {"Rules": [{"Name": rule["Name"], "Value": rule["Value"]} for rule in rules]}}
    return shown


def _in_case_of(declared: list[dict[str, Any]], entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """S3 writes `Prefix` where the template says `prefix`, in its own order: equal entries are shown as declared."""
    left = list(entries)
    shown = []
    for entry in declared:
        twin = next((other for other in left if _folded(other) == _folded(entry)), None)
        if twin is not None:
            left.remove(twin)
            shown.append(entry)
    return shown + left


def _folded(entry: Mapping[str, Any]) -> Any:
    rules = ((entry.get("Filter") or {}).get("S3Key") or {}).get("Rules") or []
    rest = {key: value for key, value in entry.items() if key != "Filter"}
    return rest, sorted((str(rule["Name"]).lower(), rule["Value"]) for rule in rules)


_TRANSITION: Final = {"TransitionInDays": "Days", "TransitionDate": "Date"}
_LATER: Final = {"TransitionInDays": "NoncurrentDays"}
_OWN_WORDS: Final = frozenset(
    {
        "ExpirationDate",
        "ExpirationInDays",
        "ExpiredObjectDeleteMarker",
        "Id",
        "NoncurrentVersionExpirationInDays",
        "NoncurrentVersionTransition",
        "NoncurrentVersionTransitions",
        "ObjectSizeGreaterThan",
        "ObjectSizeLessThan",
        "Prefix",
        "TagFilters",
        "Transition",
        "Transitions",
    }
)


def lifecycle_to(value: Mapping[str, Any]) -> dict[str, Any]:
    """`LifecycleConfiguration`, without `TransitionDefaultMinimumObjectSize`, which is a parameter beside it."""
    return {"Rules": [_rule_to(rule) for rule in value["Rules"]]}


def _rule_to(rule: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {key: value for key, value in rule.items() if key not in _OWN_WORDS}
    if rule.get("Id"):
        config["ID"] = rule["Id"]
    config["Filter"] = _filter_to(rule)
    expiration = present(
        {
            "Days": rule.get("ExpirationInDays"),
            "Date": rule.get("ExpirationDate"),
            "ExpiredObjectDeleteMarker": rule.get("ExpiredObjectDeleteMarker"),
        }
    )
    if expiration:
        config["Expiration"] = expiration
    transitions = [*(rule.get("Transitions") or []), *_one(rule.get("Transition"))]
    if transitions:
        config["Transitions"] = [renamed(entry, _TRANSITION) for entry in transitions]
    later = [*(rule.get("NoncurrentVersionTransitions") or []), *_one(rule.get("NoncurrentVersionTransition"))]
    if later:
        config["NoncurrentVersionTransitions"] = [renamed(entry, _LATER) for entry in later]
    if rule.get("NoncurrentVersionExpirationInDays") is not None:
        config["NoncurrentVersionExpiration"] = {"NoncurrentDays": rule["NoncurrentVersionExpirationInDays"]}
    return config


def _filter_to(rule: Mapping[str, Any]) -> dict[str, Any]:
    parts = present(
        {
            "Prefix": rule.get("Prefix"),
            "ObjectSizeGreaterThan": _number(rule.get("ObjectSizeGreaterThan")),
            "ObjectSizeLessThan": _number(rule.get("ObjectSizeLessThan")),
        }
    )
    filters = [dict(tag) for tag in rule.get("TagFilters") or []]
    if len(parts) + len(filters) > 1:
        return {"And": {**parts, **({"Tags": filters} if filters else {})}}
    if filters:
        return {"Tag": filters[0]}
    return parts or {"Prefix": ""}


def lifecycle_from(answer: Mapping[str, Any], declared: Mapping[str, Any] | None) -> dict[str, Any]:
    """`LifecycleConfiguration`. A rule's id that S3 made up is not shown where the template gave none."""
    rules = [_rule_from(rule) for rule in answer.get("Rules", [])]
    wanted = (declared or {}).get("Rules") or []
    if len(wanted) == len(rules):
        for rule, written in zip(rules, wanted, strict=True):
            if "Id" not in written:
                rule.pop("Id", None)
            for name in ("Transition", "NoncurrentVersionTransition", "NoncurrentVersionExpirationInDays"):
                _in_old_words(rule, written, name)
    shown: dict[str, Any] = {"Rules": rules}
    size = answer.get("TransitionDefaultMinimumObjectSize")
    if size and "TransitionDefaultMinimumObjectSize" in (declared or {}):
        shown["TransitionDefaultMinimumObjectSize"] = size
    return shown


def _in_old_words(rule: dict[str, Any], written: Mapping[str, Any], name: str) -> None:
    """A template may use the singular forms that came before the lists."""
    if name not in written:
        return
    if name == "NoncurrentVersionExpirationInDays":
        expiration = rule.get("NoncurrentVersionExpiration") or {}
        if set(expiration) == {"NoncurrentDays"}:
            rule[name] = rule.pop("NoncurrentVersionExpiration")["NoncurrentDays"]
        return
    several = f"{name}s"
    if several not in written and len(rule.get(several) or []) == 1:
        rule[name] = rule.pop(several)[0]


def _rule_from(rule: Mapping[str, Any]) -> dict[str, Any]:
    known = {"ID", "Filter", "Prefix", "Expiration", "Transitions", "NoncurrentVersionTransitions"}
    shown: dict[str, Any] = {key: value for key, value in rule.items() if key not in known and value is not None}
    if rule.get("ID"):
        shown["Id"] = rule["ID"]
    shown.update(_filter_from(rule))
    expiration = rule.get("Expiration") or {}
    shown.update(
        present(
            {
                "ExpirationInDays": expiration.get("Days"),
                "ExpirationDate": _date(expiration.get("Date")),
                "ExpiredObjectDeleteMarker": expiration.get("ExpiredObjectDeleteMarker") or None,
            }
        )
    )
    if rule.get("Transitions"):
        shown["Transitions"] = [_transition_from(entry) for entry in rule["Transitions"]]
    if rule.get("NoncurrentVersionTransitions"):
        shown["NoncurrentVersionTransitions"] = [
            renamed(entry, turned(_LATER)) for entry in rule["NoncurrentVersionTransitions"]
        ]
    return shown


def _transition_from(entry: Mapping[str, Any]) -> dict[str, Any]:
    shown = renamed(entry, turned(_TRANSITION))
    if "TransitionDate" in shown:
        shown["TransitionDate"] = _date(shown["TransitionDate"])
    return shown


def _filter_from(rule: Mapping[str, Any]) -> dict[str, Any]:
    chosen = rule.get("Filter") or {}
    parts = chosen.get("And") or chosen
    filters = [*(parts.get("Tags") or []), *_one(parts.get("Tag"))]
    return present(
        {
            "Prefix": parts.get("Prefix") or rule.get("Prefix") or None,
            "ObjectSizeGreaterThan": _text(parts.get("ObjectSizeGreaterThan")),
            "ObjectSizeLessThan": _text(parts.get("ObjectSizeLessThan")),
            "TagFilters": filters or None,
        }
    )


def _one(value: Any) -> list[Any]:
    return [] if value is None else [value]


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _date(value: Any) -> Any:
    """botocore gives a moment; a template has text."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "strftime") else value
